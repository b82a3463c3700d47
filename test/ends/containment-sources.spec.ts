import { expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../../libs/', import.meta.url));
const library = 'session-end/src';
const plugin = 'debate-space/src';

/** What the host's process calls later, with nobody above it who catches. */
const REGISTRATIONS =
  /^(on|once|addHook|addListener|setTimeout|setInterval|setImmediate|queueMicrotask|defineProperty)$/;

/** Callbacks without a containment of their own, and why they cannot throw into the host. */
const EXCEPTIONS = {
  [`${plugin}/async/with-timeout.ts setTimeout`]: 'only settles a promise',
  [`${plugin}/async/combined-signal.ts setTimeout`]:
    'only aborts a signal; a listener of a signal that throws does not throw here',
  [`${library}/answer-gate.ts defineProperty`]: 'puts back the own descriptor of the response',
  [`${library}/cookie-sessions.ts setTimeout`]: 'only forgets a departure',
  [`${library}/fastify.ts addHook`]: 'catches what each listener throws, without a closure for each request',
  [`${library}/fastify.ts defineProperty`]: 'reportSession() catches what each listener throws',
  [`${library}/patch-store.ts defineProperty`]: 'puts back the own descriptor of the store',
  [`${library}/session-reader.ts setTimeout`]: 'only settles a promise',
  [`${library}/session-request.ts on`]: 'closed() catches what each listener throws',
  [`${library}/waits.ts setTimeout`]: 'only settles a promise',
};

/** The code that a registration hands over; that of a name is where the file declares it. */
function callbacksOf(call: ts.CallExpression, name: string): ts.Node[] {
  if (name !== 'defineProperty')
    return call.arguments.filter((each) => !ts.isLiteralExpression(each) && !ts.isNumericLiteral(each));
  const [, , descriptor] = call.arguments;
  if (!descriptor || !ts.isObjectLiteralExpression(descriptor)) return [descriptor ?? call];
  return descriptor.properties.filter((each) => /^[gs]et$/.test(each.name?.getText() ?? ''));
}

function bypassesIn(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(root + file, 'utf8'), ts.ScriptTarget.Latest, true);
  const declared = new Map<string, ts.Node>();
  const calls: (readonly [name: string, call: ts.CallExpression])[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && node.initializer)
      declared.set(node.name.getText(), node.initializer);
    if (ts.isCallExpression(node)) {
      const name = /[#\w]+$/.exec(node.expression.getText())?.[0] ?? '';
      if (REGISTRATIONS.test(name)) calls.push([name, node]);
    }
    node.forEachChild(visit);
  };
  visit(source);
  const isContained = (callback: ts.Node): boolean =>
    /\bcontain(ment\.run|ed)\b/.test((declared.get(callback.getText()) ?? callback).getText());
  return calls
    .filter(([name, call]) => {
      const callbacks = callbacksOf(call, name);
      return callbacks.length > 0 && !callbacks.some(isContained);
    })
    .map(([name]) => `${file} ${name}`);
}

it('every listener, hook, setter and timer beside the host’s requests runs inside the containment', () => {
  const rooms = ['module', 'api', 'live-sessions', 'logout/queue', 'options', 'secrets', 'async'].map(
    (room) => `${plugin}/${room}`,
  );
  const inRooms = rooms.flatMap((room) =>
    readdirSync(root + room, { recursive: true, encoding: 'utf8' }).map((name) => `${room}/${name}`),
  );
  const beside = [plugin, library].flatMap((folder) =>
    readdirSync(root + folder).map((name) => `${folder}/${name}`),
  );
  const sources = [...inRooms, ...beside].filter((file) => /(?<!\.spec)\.ts$/.test(file));
  const bypasses = [...new Set(sources.flatMap(bypassesIn))].toSorted();
  expect(bypasses).toEqual(Object.keys(EXCEPTIONS).toSorted());
});
