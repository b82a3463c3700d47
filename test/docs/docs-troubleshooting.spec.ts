import { describe, expect, it } from '@jest/globals';
import type { LoggerService } from '@nestjs/common';
import session from 'express-session';
import * as plugin from 'nestjs-debate-space';
import type { DebateSpaceErrorCode, DebateSpaceEvent, DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { EventLog } from '../../libs/debate-space/src/module/event-log.js';
import { fencesOf, pageOf } from 'debate-space-fixtures/docs-snippets.js';
import { scenario } from 'debate-space-fixtures/scenario.js';

const path = 'docs/troubleshooting.md';
const page = pageOf(path);
const sources = fileURLToPath(new URL('../../libs/debate-space/src/', import.meta.url));

/** What the first or the second cell of a row, and the `text` blocks of the page quote. */
const entries = [
  ...[...page.matchAll(/^\|(?: `[\w-]+` +\|)? (`[^`]+`(?:<br>`[^`]+`)*) +\|/gm)].flatMap(([, cell = '']) =>
    cell.slice(1, -1).split('`<br>`'),
  ),
  ...fencesOf(path)
    .filter(({ language }) => language === 'text')
    .flatMap(({ code }) => code.trimEnd().split('\n')),
];
const codes = new Set([...page.matchAll(/^\| `([\w-]+)` +\| `/gm)].map(([, code = '']) => code));
const isCode = (entry: string): boolean => /^[\w-]+$/.test(entry);

/** `…` stands for anything, or nothing. */
const patternOf = (text: string): RegExp => {
  const parts = text.split('…').map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`);
};
const lines = entries.filter((entry) => !isCode(entry));
/** The entry for a line, which may have `…` itself where it is not known before it runs. */
const entryOf = (line: string): string | undefined =>
  lines.find((entry) => patternOf(entry).test(line) || patternOf(line).test(entry));

class Recorder implements LoggerService {
  readonly warnings: string[] = [];
  readonly infos: string[] = [];
  log(line: string): void {
    this.infos.push(line);
  }
  warn(line: string): void {
    this.warnings.push(line);
  }
  error(line: string): void {
    this.warnings.push(line);
  }
}

const erasure = { reference: 'GDPR-1', mode: 'delete' } as const;
const user = { ...erasure, uidHash: 'hash' };
const logout = { id: 'id', uid: 'alice' };
const attempt = { ...logout, attempts: 3, tookMs: 5 };
const counts = { total: 3, done: 1, notFound: 1, vetoed: 1, canceled: 0 };

/** What does not write to the log of the plugin. */
const OTHER = /\.spec\.|schematics/;

/** One event may have several types. */
type EventOf<Type, Event = DebateSpaceEvent> = Event extends { type: infer Types }
  ? Type extends Types
    ? Omit<Event, 'type'> & { readonly type: Type }
    : never
  : never;

/** Samples of every event; the compiler sees to it that none is left out. */
const events: { [Type in DebateSpaceEvent['type']]: readonly EventOf<Type>[] } = {
  'session-ended': [{ type: 'session-ended', ...logout, reason: 'destroyed' }],
  'logout-delivered': [{ type: 'logout-delivered', ...attempt, delayMs: 9 }],
  'logout-retrying': [{ type: 'logout-retrying', ...attempt, cause: '503', delayMs: 9 }],
  'logout-parked': Array<EventOf<'logout-parked'>>(10).fill({
    type: 'logout-parked',
    ...attempt,
    cause: '403',
    hint: 'a hint',
  }),
  'storage-degraded': [{ type: 'storage-degraded', cause: 'ENOSPC' }],
  'storage-emptied': [
    { type: 'storage-emptied', place: 'the database app on db.example.org' },
    { type: 'storage-emptied', place: undefined },
  ],
  'storage-recovered': [{ type: 'storage-recovered' }],
  'erasure-requested': [{ type: 'erasure-requested', ...erasure, total: 1 }],
  'erasure-done': [{ type: 'erasure-done', ...user, outcome: 'erased', attempts: 1, loggedOut: true }],
  'erasure-vetoed': [{ type: 'erasure-vetoed', ...user, reason: 'legal hold' }],
  'erasure-retrying': [{ type: 'erasure-retrying', ...user, attempts: 1, cause: '503', delayMs: 9 }],
  'erasure-parked': Array<EventOf<'erasure-parked'>>(10).fill({
    type: 'erasure-parked',
    ...user,
    attempts: 3,
    cause: '422',
    hint: 'a hint',
  }),
  'erasure-overdue': [{ type: 'erasure-overdue', ...erasure, waiting: 2, days: 7 }],
  'erasure-paused': [{ type: 'erasure-paused', ...erasure }],
  'erasure-resumed': [{ type: 'erasure-resumed', ...erasure }],
  'erasure-canceled': [{ type: 'erasure-canceled', ...erasure, count: 2 }],
  'erasure-finished': [{ type: 'erasure-finished', ...erasure, ...counts }],
  'erasures-in-memory': [{ type: 'erasures-in-memory' }],
  'erasures-dropped': [{ type: 'erasures-dropped', count: 2 }],
  'erasure-service-down': [{ type: 'erasure-service-down', cause: '503' }],
  'erasure-service-up': [{ type: 'erasure-service-up' }],
  'service-pause-requested': [{ type: 'service-pause-requested', status: 429, pauseMs: 5_000 }],
  'logout-route-unexpected': [
    {
      type: 'logout-route-unexpected',
      address: 'https://debate.example.org/auth/logout/my-app',
      cause: '302',
      hint: 'a hint',
    },
  ],
  'service-down': [{ type: 'service-down', cause: '503' }],
  'service-up': [{ type: 'service-up' }],
  'shutdown-incomplete': [
    { type: 'shutdown-incomplete', pending: 2, lost: true },
    { type: 'shutdown-incomplete', pending: 2, lost: false },
  ],
  'session-store-found': [{ type: 'session-store-found', store: 'RedisStore' }],
  'setup-warning': [], // below: each code has its own line
  fault: [
    { type: 'fault', where: 'logger', error: 'TypeError' },
    { type: 'fault', where: 'outbox', error: 'StorageError', problem: 'Postgres failed (53100: disk full)' },
  ],
};

type SetupWarningCode = Extract<DebateSpaceEvent, { type: 'setup-warning' }>['code'];
const setupWarnings: Record<SetupWarningCode, true> = {
  'uid-not-found': true,
  'uid-never-found': true,
  'cookie-without-uid': true,
  'session-without-store': true,
  'session-of-parent-app': true,
  'clear-not-listed': true,
  'store-not-watchable': true,
  'store-not-answering': true,
};

const errorCodes: Record<DebateSpaceErrorCode, true> = {
  ERR_DEBATE_SPACE_OPTIONS: true,
  ERR_DEBATE_SPACE_INVALID_UID: true,
  ERR_DEBATE_SPACE_INVALID_ARGUMENT: true,
  ERR_DEBATE_SPACE_AUTHENTICATION: true,
  ERR_DEBATE_SPACE_PERMISSION: true,
  ERR_DEBATE_SPACE_USER_NOT_FOUND: true,
  ERR_DEBATE_SPACE_RATE_LIMITED: true,
  ERR_DEBATE_SPACE_REFUSED: true,
  ERR_DEBATE_SPACE_UNAVAILABLE: true,
  ERR_DEBATE_SPACE_NETWORK: true,
  ERR_DEBATE_SPACE_TIMEOUT: true,
  ERR_DEBATE_SPACE_UNEXPECTED_RESPONSE: true,
  ERR_DEBATE_SPACE_NO_ACCOUNTS: true,
  ERR_DEBATE_SPACE_PAGE_LIMIT: true,
  ERR_DEBATE_SPACE_ABORTED: true,
  ERR_DEBATE_SPACE_STORAGE: true,
  ERR_DEBATE_SPACE_UNKNOWN_ERASURE: true,
  ERR_DEBATE_SPACE_ERASURE_CONFLICT: true,
};

function loggedOf(all: readonly DebateSpaceEvent[]): string[] {
  const recorder = new Recorder();
  const log = new EventLog(recorder);
  for (const event of all) log.write(event);
  log.flush();
  return recorder.warnings;
}

/** Stands for what a template puts in. */
const VARIABLE = '…';

const isSum = (node: ts.Node): boolean =>
  ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken;

/** The text of an expression of strings, such as `'a ' + b`, with {@link VARIABLE} for what is not known before it runs. */
function textsOf(node: ts.Expression): string[] {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isParenthesizedExpression(node)) return textsOf(node.expression);
  if (ts.isConditionalExpression(node)) return [node.whenTrue, node.whenFalse].flatMap(textsOf);
  if (ts.isTemplateExpression(node)) {
    return [node.head.text + node.templateSpans.map(({ literal }) => VARIABLE + literal.text).join('')];
  }
  if (ts.isBinaryExpression(node) && isSum(node)) {
    return textsOf(node.left).flatMap((left) => textsOf(node.right).map((right) => left + right));
  }
  return [VARIABLE];
}

/** Not a part of a longer text. */
const isWhole = ({ parent }: ts.Node): boolean => !(isSum(parent) || ts.isParenthesizedExpression(parent));

function valueOf(object: ts.ObjectLiteralExpression, name: string): ts.Expression | undefined {
  const found = object.properties.find((property) => property.name?.getText() === name);
  return found && ts.isPropertyAssignment(found) ? found.initializer : undefined;
}

/**
 * All texts in the sources; and the lines that they make: for a logger, of a `StorageError` or another `problem` with its
 * `hint`, and texts with a hint.
 */
function textsInSources(): { readonly all: ReadonlySet<string>; readonly lines: ReadonlySet<string> } {
  const all = new Set<string>();
  const lines = new Set<string>();
  const addLines = (problem: ts.Expression, hint?: ts.Expression): void => {
    const hints = hint ? textsOf(hint).map((text) => `; hint: ${text}`) : [''];
    for (const text of textsOf(problem)) for (const end of hints) lines.add(text + end);
  };
  const visit = (node: ts.Node): void => {
    if (ts.isExpression(node) && isWhole(node)) {
      for (const text of textsOf(node)) {
        all.add(text);
        if (/[a-z].*\bhint: /.test(text)) lines.add(text);
      }
    }
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      const callee = node.expression.getText();
      const [line, hint] = node.arguments ?? [];
      if (line && /^StorageError$|[lL]ogger\.(warn|error)$/.test(callee)) addLines(line, hint);
    }
    if (ts.isObjectLiteralExpression(node)) {
      const [problem, hint] = ['problem', 'hint'].map((name) => valueOf(node, name));
      if (problem && hint) addLines(problem, hint);
    }
    ts.forEachChild(node, visit);
  };
  const files = readdirSync(sources, { recursive: true, encoding: 'utf8' });
  for (const file of files.filter((name) => name.endsWith('.ts') && !OTHER.test(name)))
    visit(ts.createSourceFile(file, readFileSync(sources + file, 'utf8'), ts.ScriptTarget.ES2023, true));
  // What a line has to say is elsewhere in the sources: `${event.message}; hint: ${event.hint}`.
  for (const line of lines) if (!/[a-z]{3}/.test(line.replaceAll('hint', ''))) lines.delete(line);
  return { all, lines };
}

const scene = scenario();

/** The lines of the boot log. */
async function bootLog(options: Partial<DebateSpaceModuleOptions>): Promise<Recorder> {
  const logger = new Recorder();
  const app = await scene.app(options, {}, { logger });
  await app.init();
  return logger;
}

describe(path, () => {
  it.each(Object.keys(errorCodes))('has an entry for the error code %s', (code) => {
    expect(page).toMatch(new RegExp(`^\\| \`\\w+Error\` +\\| \`${code}\` `, 'm'));
  });

  it('names every error class with its code', () => {
    const classes = Object.values(plugin).filter((each): each is typeof plugin.NetworkError =>
      Object.prototype.isPrototypeOf.call(plugin.DebateSpaceRequestError, each as object),
    );
    expect(classes.length).toBeGreaterThan(10);
    const details = { operation: 'token', retryable: false, outcome: 'not-sent', attempts: 0 } as const;
    const errors = [
      ...classes.map((Kind) => new Kind('', details)),
      new plugin.StorageError(''),
      new plugin.DebateSpaceOptionsError([]),
      new plugin.NoAccountsError(1),
    ];
    for (const { constructor, code } of errors)
      expect(page).toMatch(new RegExp(`\`${constructor.name}\` +\\| \`${code}\``));
  });

  it.each(Object.keys(setupWarnings))('has an entry for the setup warning %s', (code) => {
    expect(codes).toContain(code);
  });

  it.each(Object.entries(events).filter(([, { length }]) => length > 0))(
    'has an entry for what the log says of %s',
    (_type, all) => {
      for (const line of loggedOf(all)) expect([line, entryOf(line)]).toEqual([line, expect.any(String)]);
    },
  );

  it('has an entry for the warnings of the boot log', async () => {
    const { warnings } = await bootLog({
      secretKey: 'short',
      session: { expiry: true, store: new session.MemoryStore() },
    });
    expect(warnings).toHaveLength(2);
    for (const line of warnings) expect([line, entryOf(line)]).toEqual([line, expect.any(String)]);
  });

  it('has an entry for each warning, storage error and hint of the sources', () => {
    const found = [...textsInSources().lines];
    expect(found.length).toBeGreaterThan(25);
    expect(found.filter((line) => entryOf(line) === undefined)).toEqual([]);
  });

  it('has no entry for a line that the plugin does not write', () => {
    const { all: texts, lines: whole } = textsInSources();
    const all = [...texts, ...whole].join('\n');
    const logged = Object.values(events).flatMap((each) => loggedOf(each));
    const stale = lines
      .filter((entry) => !logged.some((line) => patternOf(entry).test(line)))
      .flatMap((entry) => entry.split(/…|[;.,] /))
      .map((part) => part.trim().replace(/\W+$/, ''))
      .filter((part) => part.length > 15 && !all.includes(part));
    expect(stale).toEqual([]);
  });
});

describe('docs/getting-started.md', () => {
  it('shows the boot line and the line of a session store', async () => {
    const { infos } = await bootLog({});
    const { code: boot = '' } =
      fencesOf('docs/getting-started.md').find(({ code }) => code.includes('session stack')) ?? {};
    const [, shown = ''] = /session stack: (Express, .*?);/.exec(boot) ?? [];
    expect(infos.join('\n')).toContain(shown);
    const recorder = new Recorder();
    new EventLog(recorder).write({ type: 'session-store-found', store: 'MemoryStore' });
    expect(pageOf('docs/getting-started.md')).toContain(`[DebateSpace] ${recorder.infos[0] ?? ''}\n`);
  });
});
