// One logout queue in a process of its own, for the benchmark: is filled, appends, is opened again. Nobody delivers.
import { performance } from 'node:perf_hooks';
import { storageOptions, type EngineName } from '../test-crash/engines.js';
import { LogoutQueue, QUEUE_FAMILIES, Secret, uidCipher } from './built-queue.js';
import { copyEntries } from './jobs-copies.js';
import { countClaims, cycle } from './jobs-cycles.js';
import { append, inParallel, newEntry } from './jobs-entries.js';

const BATCH = 256;
const [engine, place = '', namespace = ''] = process.argv.slice(2);

/** What the benchmark asks, by `task`. */
type Question =
  | { readonly task: 'fill'; readonly count: number }
  | { readonly task: 'append'; readonly count: number; readonly atOnce: number }
  | { readonly task: 'claim' }
  | { readonly task: 'cycle'; readonly ms: number };

export interface Appended {
  readonly eachMs: number;
  readonly times: readonly number[];
}

export interface Claimed {
  readonly claimed: number;
  readonly recoveryMs: number;
}

const { storage } = await storageOptions({ engine: engine as EngineName, place });
const begun = performance.now();
const opened = await storage.open({
  namespace,
  families: QUEUE_FAMILIES,
  contained: (work) => {
    work();
  },
});
const { storage: observed, counted } = countClaims(opened);
const uids = uidCipher([new Secret('a key')], namespace);
const queue = new LogoutQueue(observed, storage, { uids, keepFinishedMs: 0 });
const openMs = performance.now() - begun;

process.on('message', (question) => {
  void answerTo(question as Question).then((answer) => process.send?.(answer));
});
process.once('disconnect', () => process.exit());
process.send?.({});

function answerTo(question: Question): Promise<object> {
  switch (question.task) {
    case 'fill':
      // Past the queue: a million appends would take a quarter of an hour on some.
      return copyEntries(opened, storage, uids, question.count);
    case 'append':
      return appended(question.count, question.atOnce);
    case 'claim':
      return claim();
    case 'cycle':
      return cycle(queue, counted, question.ms);
  }
}

/** Appends so many, measured, and takes as many out again, not measured. */
async function appended(count: number, atOnce: number): Promise<Appended> {
  const entries = Array.from({ length: count }, newEntry);
  const from = performance.now();
  const times = await append(queue, entries, atOnce);
  const eachMs = (performance.now() - from) / count;
  for (let left = count; left > 0;) {
    const jobs = await queue.claim(Math.min(left, BATCH));
    await inParallel(jobs, 16, (job) => queue.finish(job.entry.id, 1));
    left -= jobs.length;
  }
  return { eachMs, times };
}

async function claim(): Promise<Claimed> {
  const from = performance.now();
  const jobs = await queue.claim(1);
  return { claimed: jobs.length, recoveryMs: openMs + performance.now() - from };
}
