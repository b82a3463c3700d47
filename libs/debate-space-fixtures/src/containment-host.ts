// A process of its own, in which one host after the other is played with a fault, without the plugin and with it. Prints
// what its browser got, and the errors that would have ended the process.
import { existsSync } from 'node:fs';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Browser } from './browser.js';
import { containmentStacks, type AnyStack } from './containment-stacks.js';
import type { EndingHost } from './endings.js';
import { faultsOn, type FaultyRequest, type HostFault } from './host-faults.js';
import { startService, using } from './service.js';

export interface Played {
  /** Status and body of each answer. */
  readonly answers: readonly (readonly [status: number, body: string])[];
  readonly errors: readonly string[];
}
export interface Comparison {
  readonly fault: string;
  readonly without: Played;
  readonly withPlugin: Played;
}
export interface ContainmentReport {
  readonly faults: readonly Comparison[];
  /** By the name of what the plugin contains. */
  readonly contained: readonly Comparison[];
}

/** What handlers of the platforms have in common. */
interface HandlerContext {
  readonly request: object & { readonly raw?: IncomingMessage; readonly res?: ServerResponse };
  readonly response?: ServerResponse;
  readonly reply?: { readonly raw: ServerResponse };
  readonly session?: HandlerSession;
}
interface HandlerSession {
  destroy(callback: (error?: unknown) => void): void;
}

const errors: string[] = [];
const note = (error: unknown): void => {
  errors.push(String(error)); // without the stack, in which the plugin's own frames may stand
};
process.on('uncaughtException', note).on('unhandledRejection', note);

function partsOf({ request, response, reply }: HandlerContext): FaultyRequest {
  const raw = request.raw ?? (request as unknown as IncomingMessage);
  return { request, raw, response: response ?? reply?.raw ?? request.res };
}

async function play(
  stack: AnyStack,
  fault: HostFault,
  url: string | undefined,
  service: Parameters<typeof using>[0],
): Promise<Played> {
  errors.length = 0;
  const act = async (context: unknown): Promise<void> => {
    const parts = partsOf(context as HandlerContext);
    const { session, request } = context as HandlerContext;
    const own = session ?? (request as unknown as { session: HandlerSession }).session;
    fault.before?.(parts);
    if (!fault.stays)
      await new Promise((resolve) => {
        own.destroy(resolve);
      });
    fault.after?.(parts);
  };
  const debateSpace = url === undefined ? undefined : using(service, fault.options);
  const host = await stack.start(act, { name: 'containment', ends: true, act }, debateSpace);
  if (debateSpace) fault.started?.(host);
  const answers: [number, string][] = [];
  const browser = new Browser(host.url, host.fetch);
  const ask = async (method: 'GET' | 'POST', path: string, body?: URLSearchParams): Promise<void> => {
    const response = await browser.fetch(path, { method, ...(body && { body }) });
    answers.push([response.status, await response.text()]);
  };
  await ask('POST', '/login', new URLSearchParams({ uid: 'alice' }));
  await ask('GET', '/whoami');
  await reachAct(host, browser, () => ask('POST', '/act'));
  await ask('GET', '/whoami');
  await ask('POST', '/login', new URLSearchParams({ uid: 'bob' }));
  await ask('GET', '/whoami');
  await host.stop();
  Logger.overrideLogger(false);
  await pause(5); // what is thrown in a timer is thrown by then
  await nextTurn();
  return { answers, errors: [...errors] };
}

async function reachAct(host: EndingHost, browser: Browser, act: () => Promise<void>): Promise<void> {
  if (!host.reach) {
    await act();
    return;
  }
  const disconnect = await host.reach(browser);
  disconnect();
}

type Run = <T>(this: unknown, where: string, work: () => T, otherwise: T) => T;

/** The one wrapper of the plugin, when it has one: throws at one of its names, or only notes them. */
async function containment(): Promise<{ readonly names: Set<string>; breakAt: (name: string) => void }> {
  const names = new Set<string>();
  let broken: string | undefined;
  const source = new URL('../../debate-space/src/async/containment.ts', import.meta.url);
  if (existsSync(source)) {
    const { Containment } = (await import(source.href)) as { Containment: { prototype: { run: Run } } };
    const own = Containment.prototype.run;
    Containment.prototype.run = function <T>(this: unknown, where: string, work: () => T, otherwise: T): T {
      names.add(where);
      const faulty = (): T => {
        if (where === broken) throw new Error('a fault that was injected');
        return work();
      };
      return own.call(this, where, faulty, otherwise) as T;
    };
  }
  return {
    names,
    breakAt: (name) => {
      broken = name;
    },
  };
}

async function main(): Promise<void> {
  const stack = containmentStacks.find(({ name }) => name === process.argv[2]);
  if (!stack) throw new Error(`no such stack: ${String(process.argv[2])}`);
  const { names, breakAt } = await containment();
  const alive = setInterval(() => undefined, 1e9); // as something does in any host
  const service = await startService();
  const compare = async (name: string, fault: HostFault): Promise<Comparison> => {
    const without = await play(stack, { ...fault, options: undefined }, undefined, service);
    return { fault: name, without, withPlugin: await play(stack, fault, service.url, service) };
  };
  const faults: Comparison[] = [];
  for (const fault of faultsOn(stack === containmentStacks[0])) faults.push(await compare(fault.name, fault));
  const contained: Comparison[] = [];
  for (const name of [...names]) {
    breakAt(name);
    contained.push(await compare(name, { name }));
  }
  await service.stop();
  clearInterval(alive);
  process.stdout.write(JSON.stringify({ faults, contained } satisfies ContainmentReport));
}

await main();
