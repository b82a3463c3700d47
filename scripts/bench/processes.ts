// What the benchmarks of the storages start and must not leave behind: folders, processes, servers.
import { fork, type ChildProcess, type Serializable } from 'node:child_process';
import { once } from 'node:events';
import { Cleanup } from '../test-crash/cleanup.js';
import { durableEngines, startEngine, type EngineName } from '../test-crash/engines.js';

/** A process, and what its first message has. */
export type Started<First extends object = Serving> = First & { readonly child: ChildProcess };

interface Serving {
  readonly url: string;
}

/** What the first message of each program has. */
interface Programs {
  './host.ts': { readonly urls: readonly string[] };
  './delivery-host.ts': object;
  './delivery-service.ts': Serving;
  './logout-host.ts': Serving;
  './logout-service.ts': Serving;
  './storage-process.ts': object;
}

const cleanup = new Cleanup();

/** A process of its own, and the first message it sends. */
export async function start<Program extends keyof Programs>(
  file: Program,
  args: readonly string[] = [],
): Promise<Started<Programs[Program]>> {
  const child = fork(new URL(file, import.meta.url), args);
  cleanup.add(() => child.kill('SIGKILL'));
  const [message] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]: unknown[]) => {
      throw new Error(`${file} ${args.join(' ')} ended with ${String(code)}`);
    }),
  ])) as [Programs[Program]];
  return { child, ...message };
}

/** A question to such a process, and its answer. */
export async function ask(child: ChildProcess, message: Serializable): Promise<unknown> {
  child.send(message);
  const [answer] = (await once(child, 'message')) as unknown[];
  return answer;
}

/** As a crash would. */
export async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** Starts servers that sync every commit. @returns the place of each engine */
export async function storagePlaces(): Promise<Readonly<Record<EngineName, string>>> {
  const places = { memory: '', sqlite: '', postgres: '', mariadb: '' };
  for (const engine of durableEngines)
    places[engine] = (await startEngine(engine, cleanup.folder(), cleanup)).url;
  return places;
}
