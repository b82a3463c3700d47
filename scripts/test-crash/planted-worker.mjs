import { setInterval } from 'node:timers';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long a job stays active; its lock lasts a good while longer. */
const ACTIVE_MS = 100;
const LOCK_MS = 400;
const CHECK_MS = 200;

/**
 * Makes of BullMQ's queue in this process what its worker is by default: a job stays active for a while, and one over which
 * a second process has died fails (`maxStalledCount: 1`; the script marks it, and whoever takes it fails it).
 */
export function workerOfDefaults(_, { Queue }) {
  const { getBackend } = Queue.prototype;
  const seen = new WeakSet();
  Queue.prototype.getBackend = function () {
    const backend = getBackend.call(this);
    if (!seen.has(backend)) {
      seen.add(backend);
      change(backend, (id) => this.getJob(id));
    }
    return backend;
  };
  return {};
}

function change(backend, jobOf) {
  const { moveToActive, moveToDelayed } = backend;
  Object.assign(backend.queue.opts, { maxStalledCount: 1, lockDuration: LOCK_MS, stalledInterval: CHECK_MS });
  backend.moveToActive = async (token, ...rest) => {
    const taken = await moveToActive.call(backend, token, ...rest);
    const [job, id] = taken;
    if (!job?.deferredFailure) return taken;
    await (await jobOf(id)).moveToFailed(new Error(job.deferredFailure), token, false);
    return [];
  };
  backend.moveToDelayed = async (...args) => {
    await sleep(ACTIVE_MS);
    return moveToDelayed.apply(backend, args);
  };
  setInterval(() => void backend.moveStalledJobsToWait().catch(() => undefined), CHECK_MS).unref();
}
