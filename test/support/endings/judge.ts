// Judges one row on one stack (`judge`). It plays the row up to three times, each time on a fresh host (`play`): with the plugin, whose
// reports have to be those of the row (`reported`), before the answer (`stored`); without the plugin, where the host, its store and
// its browsers have to learn the same (`same`); and with something of the plugin's surroundings broken (`contained`).
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import {
  DebateSpaceEvents,
  memoryStorage,
  type DebateSpaceModuleOptions,
  type StorageEngine,
} from 'nestjs-debate-space';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Storage } from '../../../libs/debate-space/src/storage/storage.js';
import type { EndingCell } from './endings.js';
import { Latch } from '../latch.js';
import { startService, using } from '../service/service.js';
import { play, type PlayOptions, type Played } from './play.js';

/** The promises that a row may break. */
export const promises = ['reported', 'stored', 'same', 'contained'] as const;
export type Promised = (typeof promises)[number];

export interface Verdict {
  readonly checked: readonly Promised[];
  /** What is wrong, each with the promise that it breaks; empty if all is well. */
  readonly wrong: readonly string[];
}

export interface JudgeOptions {
  /** The major version of NestJS, where it is not the newest. */
  readonly nest?: string;
  /** The promises that a row is held to. Default: all. */
  readonly only?: (cell: EndingCell) => readonly Promised[];
  /** The errors that nobody has caught since it was last asked: without the plugin they would not be there. */
  readonly uncaught?: () => readonly string[];
}

const STORAGE_KEY = 'the storage key of a test';
const REPORT_TIMEOUT_MS = 15_000;
const PLAY_TIMEOUT_MS = 40_000;
/** Two reports of one user within this time harm nobody. */
const MAX_APART_MS = 1_000;

async function judge(
  cell: EndingCell,
  n: number,
  service: DebateSpaceSimulator,
  options: JudgeOptions,
): Promise<Verdict> {
  const wrong: string[] = [];
  const checked = new Set<Promised>();
  let watched: Watched | undefined;
  const run = (how: Promised, work: () => Promise<unknown>): Promise<unknown> =>
    within(PLAY_TIMEOUT_MS, work()).catch((error: unknown) => wrong.push(`${how}: ${String(error)}`));
  await run('reported', async () => {
    watched = await playWatched(cell, service);
    checked.add('reported');
    wrong.push(...wrongReports(cell, watched, options.nest).map((text) => `reported: ${text}`));
    const { later = false, laterOn } = cell.ending;
    if (watched.stored === undefined || later || laterOn === `nest${options.nest ?? ''}`) return;
    checked.add('stored');
    if (!watched.stored) wrong.push('stored: the answer was whole before the logout was stored');
  });
  const wanted = options.only?.(cell) ?? promises;
  if (!wanted.includes('same')) return { checked: [...checked], wrong };
  await run('same', async () => {
    const plain = await play(cell, {});
    checked.add('same');
    if (watched) wrong.push(...difference(plain, watched.played).map((text) => `same: ${text}`));
    if (!wanted.includes('contained')) return;
    const names = Object.keys(breakages);
    const name = names[n % names.length] ?? '';
    const { options: more, ...broken } = breakages[name]?.() ?? {};
    options.uncaught?.();
    const played = await play(cell, { ...broken, debateSpace: using(service, more) });
    await pause(5); // what is thrown in a timer is thrown by then
    checked.add('contained');
    const lost = [...difference(plain, played), ...(options.uncaught?.() ?? [])];
    wrong.push(...lost.map((text) => `contained, when ${name}: ${text}`));
  });
  return { checked: [...checked], wrong };
}

interface Watched {
  readonly played: Played;
  /** The users whose logouts the service has received. */
  readonly reported: readonly string[];
  /** When the host had its events, by uid. */
  readonly at: ReadonlyMap<string, readonly number[]>;
  readonly isLate: boolean;
  /** Whether all was stored when the answer was whole; undefined: no request has ended a session. */
  readonly stored: boolean | undefined;
}

async function playWatched(cell: EndingCell, service: DebateSpaceSimulator): Promise<Watched> {
  const logouts = new Set<string>();
  const at = new Map<string, number[]>();
  const reports = cell.ending.reports ?? ['alice'];
  const before = service.received.logouts.length;
  const reported = (): string[] => service.received.logouts.slice(before).map(nameOf);
  let [stored, isLate]: [boolean | undefined, boolean] = [undefined, false];
  let nameOf = (uid: string): string => uid;
  // A busy machine is no storage that is away.
  const logout = { concurrency: 50, storageTimeoutMs: 20_000 };
  const options: PlayOptions = {
    debateSpace: using(service, {
      storageKey: STORAGE_KEY,
      logout,
      storage: slowly(memoryStorage(), logouts),
    }),
    started: (host) => {
      nameOf = host.nameOf ?? nameOf;
      host.app.get(DebateSpaceEvents).events$.subscribe((event) => {
        if (event.type !== 'session-ended') return;
        at.set(event.uid, [...(at.get(event.uid) ?? []), performance.now()]);
      });
    },
    answered: () => {
      stored = logouts.size >= reports.length;
    },
    reported: async (loggedOut) => {
      isLate = !(await haveAllReports(service, loggedOut, reported));
    },
  };
  const played = await play(cell, options);
  return { played, reported: reported(), at, isLate, stored };
}

/** Waits until the service has received a logout of each of them. @returns whether it has */
async function haveAllReports(
  service: DebateSpaceSimulator,
  uids: readonly string[],
  reported: () => readonly string[],
): Promise<boolean> {
  try {
    while (uids.some((uid) => !reported().includes(uid))) {
      const count = service.received.of('logout').length + 1;
      await service.received.waitFor('logout', { count, timeoutMs: REPORT_TIMEOUT_MS });
    }
    return true;
  } catch {
    return false;
  }
}

function wrongReports({ ending }: EndingCell, watched: Watched, nest = '12'): string[] {
  const ends = ending.endsOn?.[`nest${nest}` as 'nest10'] ?? ending.ends;
  const expected = (ending.reports ?? (ends ? ['alice'] : [])).toSorted();
  const leaves = (ending.leaves ?? expected).toSorted();
  const reported = [...new Set(watched.reported)].toSorted();
  const wrong: string[] = [];
  const { loggedOut } = watched.played;
  if (!isDeepStrictEqual(loggedOut, [...new Set(leaves)]))
    wrong.push(
      `the browsers of [${loggedOut.join()}] are logged out, and the row expects [${leaves.join()}]`,
    );
  const missed = expected.filter((uid) => !reported.includes(uid));
  const invented = reported.filter((uid) => !expected.includes(uid));
  if (missed.length > 0) wrong.push(`missed: ${missed.join()}`);
  if (invented.length > 0) wrong.push(`invented: ${invented.join()}`);
  if (watched.isLate && missed.length === 0) wrong.push('reported only when the host was stopped');
  // A scene may end a session of a user again and again.
  for (const [uid, times] of ending.play ? [] : watched.at)
    if ((times.at(-1) ?? 0) - (times[0] ?? 0) > MAX_APART_MS) wrong.push(`twice: ${uid}`);
  return wrong;
}

/** The first line of each list that is another. */
function difference({ trace: expected }: Played, { trace: received }: Played): string[] {
  return Object.entries(expected).flatMap(([name, lines]) => {
    const others = received[name] ?? [];
    const n = [...lines, ...others].findIndex((_, index) => !isDeepStrictEqual(lines[index], others[index]));
    const text = (line: unknown): string => JSON.stringify(line) || 'nothing';
    return n < 0 ? [] : [`${name}: ${text(others[n])} in place of ${text(lines[n])}`];
  });
}

/** As durable as a database, and as slow: an answer waits for it. */
function slowly(engine: StorageEngine, logouts: Set<string>): StorageEngine {
  return withMethods({ ...engine, durable: true }, (own) => ({
    addLogouts: async (rows) => {
      for (let turn = 0; turn < 50; turn += 1) await nextTurn();
      await own.addLogouts(rows);
      for (const { id } of rows) logouts.add(id);
    },
  }));
}

/** @param replaced is given the methods as they were */
function withMethods(engine: StorageEngine, replaced: (own: Storage) => Partial<Storage>): StorageEngine {
  return {
    ...engine,
    open: async (application) => {
      const opened = await engine.open(application);
      const methods = replaced(opened.storage);
      const storage = new Proxy(opened.storage, {
        get: (own, name) => {
          const method: unknown = Reflect.get(methods, name) ?? Reflect.get(own, name);
          return typeof method === 'function' ? (method.bind(own) as unknown) : method;
        },
      });
      return { ...opened, storage };
    },
  };
}

/** Something of the plugin's surroundings that fails from the start of the host on. */
type Breakage = () => Pick<PlayOptions, 'started' | 'over'> & {
  readonly options?: Partial<DebateSpaceModuleOptions>;
};

const fault = (): Error => new Error('a fault that was injected');
const fail = (): never => {
  throw fault();
};
const reject = (): Promise<never> => Promise.reject(fault());
const failing: Partial<Storage> = { addLogouts: reject, claim: reject, birth: reject, prune: reject };

const durable = (replaced: Parameters<typeof withMethods>[1]): Partial<DebateSpaceModuleOptions> => ({
  storage: withMethods({ ...memoryStorage(), durable: true }, replaced),
  storageKey: STORAGE_KEY,
});

const breakages: Readonly<Record<string, Breakage>> = {
  'the storage rejects': () => ({
    options: { ...durable(() => failing), logout: { storageTimeoutMs: 20 } },
  }),
  'the storage does not answer before the host stops': () => {
    const released = new Latch();
    let hasStarted = false;
    const storage = durable((own) => ({
      addLogouts: async (rows) => {
        if (hasStarted) await released.passed;
        return own.addLogouts(rows);
      },
    }));
    return {
      options: { ...storage, logout: { storageTimeoutMs: 20 } },
      started: () => (hasStarted = true),
      over: () => {
        released.open();
      },
    };
  },
  'session.uid throws': () => ({ options: { session: { uid: fail } } }),
  'a listener to the events throws': () => ({
    started: (host) => void host.app.get(DebateSpaceEvents).events$.subscribe(fail),
  }),
};

async function within(ms: number, work: Promise<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(reject, ms, new Error(`not over after ${ms} ms`));
  });
  return Promise.race([work, late]).finally(() => {
    clearTimeout(timer);
  });
}

/** Judges some rows at a time, each lane with a service of its own. @param judged called with each verdict */
export async function judgeAll(
  cells: readonly EndingCell[],
  lanes: number,
  options: JudgeOptions,
  judged: (cell: EndingCell, verdict: Verdict) => unknown,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    await using service = await startService();
    for (let n = next++; n < cells.length; n = next++) {
      const cell = cells[n];
      if (cell) await judged(cell, await judge(cell, n, service, options));
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
