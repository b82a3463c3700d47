// What the benchmarks share: their options, processes and storages, and medians of rounds that alternate.
import { fork, type ChildProcess, type Serializable } from 'node:child_process';
import { once } from 'node:events';
import type { DebateSpaceModuleOptions, StorageEngine } from 'nestjs-debate-space';
import { Cleanup } from '../test-crash/cleanup.js';
import { durableEngines, startEngine, type EngineName } from '../test-crash/engines.js';

/** What the command line chooses; each benchmark takes what it needs. */
export interface BenchOptions {
  readonly pairs: number;
  readonly rounds: number;
  readonly pending: number;
  readonly guard: boolean;
  readonly engines: readonly EngineName[];
}

/** No real service takes them. */
export const keys = {
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
};
export const storageKey = 'a key that protects nothing';

const cleanup = new Cleanup();

/** Programs by name: the file of a benchmark is its programs as well, each of which answers what it is asked. */
export type Programs = Readonly<Record<string, (...args: string[]) => Promise<void>>>;

/** In a process that {@link start} has begun. */
export async function runProgram(programs: Programs): Promise<void> {
  const [name = '', ...args] = process.argv.slice(2);
  if (!process.send || !Object.hasOwn(programs, name)) return;
  process.once('disconnect', () => process.exit());
  await programs[name]?.(...args);
}

/** Begins a program, and waits for its first message. */
export async function start<First>(
  file: string,
  args: readonly string[],
): Promise<First & { child: ChildProcess }> {
  const child = fork(new URL(file, import.meta.url), args);
  cleanup.add(() => child.kill('SIGKILL'));
  const ended = once(child, 'exit').then(([code]: unknown[]) => {
    throw new Error(`${file} ${args.join(' ')} ended with ${String(code)}`);
  });
  const [first] = (await Promise.race([once(child, 'message'), ended])) as [First];
  return { ...first, child };
}

export async function ask(child: ChildProcess, question: Serializable): Promise<unknown> {
  child.send(question);
  const [answer] = (await once(child, 'message')) as unknown[];
  return answer;
}

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

export interface OpenEngine extends Pick<DebateSpaceModuleOptions, 'storageKey'> {
  readonly storage: StorageEngine;
  /** Runs a statement through the driver or the pool of the storage. */
  readonly query: (text: string, values: unknown[]) => Promise<unknown>;
}

export async function openEngine(engine: EngineName, place: string): Promise<OpenEngine> {
  switch (engine) {
    case 'memory': {
      const { memoryStorage } = await import('nestjs-debate-space');
      return { storage: memoryStorage(), storageKey, query: () => Promise.resolve() };
    }
    case 'sqlite': {
      const { sqliteStorage } = await import('nestjs-debate-space/sqlite');
      const { openDriver } = await import('../../libs/debate-space/src/storage/sqlite-file.js');
      const driver = await openDriver(`${place}.bare`); // with the same settings
      const query = (text: string, values: unknown[]) => Promise.resolve(driver.prepare(text).run(...values));
      return { storage: sqliteStorage({ path: place }), storageKey, query };
    }
    case 'postgres': {
      const { postgresStorage } = await import('nestjs-debate-space/postgres');
      const { default: pg } = await import('pg');
      const pool = new pg.Pool({ connectionString: place }).on('error', () => undefined);
      const query = (text: string, values: unknown[]) => pool.query(text.replace('?, ?', '$1, $2'), values);
      return { storage: postgresStorage({ pool }), storageKey, query };
    }
    case 'mariadb': {
      const { mysqlStorage } = await import('nestjs-debate-space/mysql');
      const { createPool } = await import('mysql2/promise');
      const pool = createPool(place);
      return {
        storage: mysqlStorage({ pool }),
        storageKey,
        query: (text, values) => pool.query(text, values),
      };
    }
  }
}

/**
 * Each subject does a round, in an order that alternates; the first round is for warming up.
 * @returns the values of each subject
 */
export async function inTurn(
  subjects: readonly (() => Promise<number>)[],
  rounds: number,
): Promise<readonly (readonly number[])[]> {
  const measured = subjects.map((subject) => ({ subject, values: [] as number[] }));
  for (let round = -1; round < rounds; round += 1)
    for (const { subject, values } of round % 2 === 0 ? measured : measured.toReversed()) {
      const value = await subject();
      if (round >= 0) values.push(value);
    }
  return measured.map(({ values }) => values);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  const [low = NaN, high = NaN] = [sorted[Math.ceil(middle - 1)], sorted[Math.floor(middle)]];
  return (low + high) / 2;
}

export const ratios = (ones: readonly number[] = [], others: readonly number[] = []): number[] =>
  ones.map((one, n) => one / (others[n] ?? NaN));

/** `median   (lowest to highest)` */
export function spread(values: readonly number[], digits = 3): string {
  const [middle, low, high] = [median(values), Math.min(...values), Math.max(...values)] as const;
  return `${middle.toFixed(digits)}   (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
}

export function line(name: string, values: readonly number[], unit = '', digits = 3): void {
  console.log(`  ${name.padEnd(56)} ${spread(values, digits)}${unit}`);
}
