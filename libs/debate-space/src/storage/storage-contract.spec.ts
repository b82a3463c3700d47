import { afterAll, afterEach, beforeEach, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { sqliteInThisThread, tableStorages, type TableStorage } from '#support/storages/table-storages.js';
import { StorageError } from '../errors.js';
import { erasureId, referenceKey } from './rules.js';
import {
  LEASE_MS,
  type Added,
  type Claim,
  type ErasureOutcome,
  type ErasureRequests,
  type JobKind,
  type LiveSession,
  type NewErasure,
  type NewLogout,
  type NewReference,
  type Progress,
  type Reference,
  type Storage,
} from './storage.js';

/** Longer than any test: a lease or delay that must not end. */
const LONG_MS = 600_000;
/** A moment that has surely passed for `prune`. */
const OVER_MS = -60_000;
const FAILED: Progress = { attempts: 3, failures: 2, rejections: 1, uncertain: undefined, cause: '503' };

let added = 0;
function newLogout(subject = 'ada'): NewLogout {
  const id = `${String((added += 1)).padStart(15, '0')}-${randomUUID()}`;
  return { id, subject, sealed: `sealed ${subject}`, details: 'logout' };
}
const newLogouts = (count: number): NewLogout[] => Array.from({ length: count }, () => newLogout());

const UNTRIED = { attempts: 0, failures: 0, rejections: 0, cause: undefined };
const ADMIN = { mode: 'delete', requestedBy: 'an administrator' } as const;
const NOT_NEW = { isNew: false, finished: undefined };
const unmarked = (reference: string) =>
  ({ reference, ...ADMIN, requestedAt: Date.now(), known: undefined, mark: '' }) as const;
const single = (reference: string): NewReference => ({ ...unmarked(reference), list: undefined });
const listPart = (reference: string, reader: string, ...which: ('first' | 'last')[]): NewReference => {
  const list = { reader, isFirst: which.includes('first'), isLast: which.includes('last') };
  return { ...unmarked(reference), list };
};
let marks = 0;
const newMark = (): string => `mark-${(marks += 1)}`;
/** As the repository of the erasures does: each change of a reference says what it has read. */
async function addErasures(
  requests: ErasureRequests,
  request: NewReference,
  erasures: readonly NewErasure[],
): Promise<Added> {
  let { known } = request;
  for (;;) {
    const added = await requests.addErasures({ ...request, known, mark: newMark() }, erasures);
    if (added.conflict !== 'changed' || !added.reference) return added;
    known = added.reference;
  }
}
async function setPaused(storage: Storage, reference: string, paused: boolean): Promise<boolean> {
  const found = await storage.reference(reference);
  return found ? storage.setPaused(found, paused, newMark()) : false;
}
const users = (reference: string, ...subjects: string[]): NewErasure[] =>
  subjects.map((subject) => {
    const id = erasureId(reference, subject);
    return { id, subject, formerIds: [], sealed: `sealed ${subject}` };
  });
const subjectsOf = (jobs: readonly { readonly subject: string }[]): string[] =>
  jobs.map(({ subject }) => subject).sort();
const session = (id: string, subject = 'ada'): LiveSession => ({ id, subject, sealed: `sealed ${id}` });

/** Claims as a lane does, until something is due. */
async function claimNext(storage: Storage, kind: JobKind, leaseMs?: number): Promise<readonly Claim[]> {
  for (;;) {
    const { claims, nextMs } = await storage.claim(kind, 10, leaseMs);
    if (claims.length > 0) return claims;
    if (nextMs === undefined) throw new Error('no job waits');
    await sleep(nextMs);
  }
}

async function claimOne(storage: Storage, kind: JobKind, leaseMs?: number): Promise<Claim> {
  const [claim] = await claimNext(storage, kind, leaseMs);
  if (!claim) throw new Error('no job was claimed');
  return claim;
}

async function until<T>(ask: () => Promise<T>, isReached: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (isReached(answer)) return answer;
    await sleep(5);
  }
}

async function cancelAll(storage: Storage, reference: string): Promise<readonly Reference[]> {
  const finished: Reference[] = [];
  for (let more = true; more;) {
    const found = await storage.reference(reference);
    if (!found) throw new Error('no such reference');
    const step = await storage.cancelErasures(found, newMark());
    const ends = step.uncertain.map((job) => storage.finishErasure(job, 'canceled', job.attempts, ''));
    for (const end of [step, ...(await Promise.all(ends))]) if (end.finished) finished.push(end.finished);
    more = step.more;
  }
  return finished;
}

for (const kept of [...tableStorages, sqliteInThisThread])
  kept.describe(`the storage in ${kept.name}`, () => {
    contract(kept);
  });

function contract(kept: TableStorage): void {
  const opened: Storage[] = [];
  let application: string;
  let storage: Storage;
  const open = async (name: string): Promise<Storage> => {
    const { storage: another } = await (await kept.engine()).open(name);
    opened.push(another);
    return another;
  };
  /** As another process has it. */
  const again = (): Promise<Storage> => (kept.isShared ? open(application) : Promise.resolve(storage));
  beforeEach(async () => {
    application = `contract-${randomUUID()}`;
    storage = await open(application);
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.close()));
  });
  afterAll(() => kept.stop());

  /** Asserts that nothing is due soon. */
  const expectNothingDue = async (kind: JobKind, within = storage): Promise<void> => {
    const { claims, nextMs = Infinity } = await within.claim(kind, 10);
    expect(claims).toEqual([]);
    expect(nextMs).toBeGreaterThan(LEASE_MS / 2);
    if (nextMs < Infinity) expect(nextMs).toBeLessThanOrEqual(LONG_MS);
  };
  const add = (reference: string, ...subjects: string[]): Promise<Added> =>
    addErasures(storage, single(reference), users(reference, ...subjects));
  const addList =
    (...request: [reference: string, reader: string, ...which: ('first' | 'last')[]]) =>
    (...subjects: string[]): Promise<Added> =>
      addErasures(storage, listPart(...request), users(request[0], ...subjects));
  const addAll = (reference: string, ...subjects: string[]): Promise<Added> =>
    addList(reference, 'a', 'first', 'last')(...subjects);
  const finish = (claim: Claim, outcome: ErasureOutcome = 'erased'): ReturnType<Storage['finishErasure']> =>
    storage.finishErasure(claim, outcome, 1, '');
  const finishAll = async (): Promise<void> => {
    await Promise.all((await claimNext(storage, 'erasure')).map((claim) => finish(claim)));
  };

  // ---- jobs

  it('keeps a logout once, however often it is added, also after it is done', async () => {
    const logout = newLogout();
    await storage.addLogouts([logout, logout]);
    await (await again()).addLogouts([logout]);
    expect(await storage.counts('logout')).toMatchObject({ waiting: 1, parked: 0 });
    const claim = await claimOne(storage, 'logout');
    expect(claim).toMatchObject({
      ...logout,
      kind: 'logout',
      state: 'waiting',
      ...UNTRIED,
      uncertain: undefined,
    });
    expect(claim.ageMs).toBeGreaterThanOrEqual(0);
    expect(claim.settledAt ?? claim.outcome ?? claim.reference).toBeUndefined();
    await storage.finishLogout(claim, 1);
    await storage.addLogouts([logout]);
    expect(await storage.claim('logout', 10)).toEqual({ claims: [], nextMs: undefined });
  });

  it('gives out the earliest due first, and says when more may be due', async () => {
    const logouts = newLogouts(5);
    for (const logout of logouts) {
      await storage.addLogouts([logout]);
      await sleep(2); // a moment of its own
    }
    const first = await storage.claim('logout', 3);
    expect(first.claims.map(({ id }) => id)).toEqual(logouts.slice(0, 3).map(({ id }) => id));
    expect(first.nextMs).toBe(0);
    const rest = await storage.claim('logout', 3);
    expect(rest.claims.map(({ id }) => id)).toEqual(logouts.slice(3).map(({ id }) => id));
    expect(rest.nextMs).toBeGreaterThan(0);
    await expectNothingDue('logout');
  });

  it('gives a job to another process when its lease ends, and not before', async () => {
    await storage.addLogouts([newLogout()]);
    const from = Date.now();
    const lost = await claimOne(storage, 'logout', 150);
    const claim = await claimOne(await again(), 'logout', LONG_MS);
    expect(Date.now() - from).toBeGreaterThanOrEqual(148);
    expect(claim.id).toBe(lost.id);
    expect(claim.token).not.toBe(lost.token);
  });

  it('renews the leases of claims, and of no claim that was lost', async () => {
    await storage.addLogouts([newLogout(), newLogout()]);
    const lost = await claimNext(storage, 'logout', 50);
    const [kept, givenBack] = await claimNext(await again(), 'logout', LONG_MS);
    if (!kept || !givenBack) throw new Error('both are due');
    await storage.renew(lost, 1);
    await expectNothingDue('logout');
    await storage.giveBack([givenBack]);
    const short = await claimOne(storage, 'logout', 5_000);
    await storage.renew([short], LONG_MS);
    await expectNothingDue('logout');
  });

  it('changes nothing with a lost lease, but ends what is done', async () => {
    await storage.addLogouts([newLogout()]);
    const lost = await claimOne(storage, 'logout', 1);
    const claim = await claimOne(await again(), 'logout', LONG_MS);
    await storage.postpone(lost, 0, FAILED);
    await storage.park(lost, 'a hint', FAILED);
    await storage.giveBack([lost]);
    await expectNothingDue('logout');
    expect(await storage.listLogouts('waiting', 10)).toMatchObject([{ attempts: 0 }]);
    await storage.finishLogout(lost, 1);
    await storage.postpone(claim, 0, FAILED);
    expect(await storage.counts('logout')).toMatchObject({ waiting: 0, parked: 0 });
  });

  it('makes a job due at once that is given back, and after the delay one that is retried', async () => {
    await storage.addLogouts([newLogout()]);
    await storage.giveBack([await claimOne(storage, 'logout')]);
    const claim = await claimOne(storage, 'logout');
    await storage.postpone(claim, LONG_MS, FAILED);
    await expectNothingDue('logout');
    await storage.addLogouts([newLogout('bob')]);
    await storage.postpone(await claimOne(storage, 'logout'), 0, FAILED);
    expect(await claimOne(storage, 'logout')).toMatchObject({ subject: 'bob', ...FAILED });
  });

  it('keeps a parked logout until somebody retries or discards it', async () => {
    await storage.addLogouts([newLogout()]);
    await storage.addLogouts([newLogout('bob')]);
    const claims = await claimNext(storage, 'logout');
    for (const claim of claims) {
      await storage.park(claim, `a hint about ${claim.subject}`, FAILED);
      await sleep(2); // parked in this order
    }
    const [one, other] = claims.map(({ id }) => id);
    if (one === undefined || other === undefined) throw new Error('both were claimed');
    const parked = await storage.listLogouts('parked', 10);
    expect(parked.map(({ id }) => id)).toEqual([one, other]);
    expect(parked[0]).toMatchObject({ state: 'parked', hint: 'a hint about ada', ...FAILED });
    expect([typeof parked[0]?.settledAt, parked[0]?.dueAt]).toEqual(['number', undefined]);
    expect([await storage.retryLogout(one), await storage.retryLogout('another')]).toEqual([true, false]);
    const claim = await claimOne(storage, 'logout');
    expect(claim).toMatchObject({ id: one, state: 'waiting', hint: undefined, ...UNTRIED });
    expect([await storage.discardLogout(other), await storage.discardLogout(other)]).toEqual([true, false]);
    const discarded = { state: 'done', outcome: 'discarded', sealed: '' };
    expect(await storage.logoutsOf(['bob'])).toMatchObject([discarded]);
  });

  it('lists what waits as it is due, and all logouts of a user, and knows the oldest end', async () => {
    const logouts = newLogouts(4);
    for (const logout of logouts.reverse()) {
      await storage.addLogouts([logout]);
      await sleep(2); // a moment of its own
    }
    const ids = async (limit: number, skip?: number): Promise<string[]> =>
      (await storage.listLogouts('waiting', limit, skip)).map(({ id }) => id);
    expect(await ids(3)).toEqual(logouts.slice(0, 3).map(({ id }) => id));
    expect(await ids(3, 3)).toEqual(logouts.slice(3).map(({ id }) => id));
    const oldestAt = Number(logouts.at(-1)?.id.slice(0, 15));
    expect(await storage.counts('logout')).toEqual({ waiting: 4, parked: 0, oldestAt });
    await storage.addLogouts([newLogout('bob'), newLogout('carol')]);
    expect(subjectsOf(await storage.logoutsOf(['ada', 'bob']))).toEqual(['ada', 'ada', 'ada', 'ada', 'bob']);
  });

  it('keeps the history of logouts for its time', async () => {
    await storage.addLogouts(newLogouts(2));
    const [claim] = await claimNext(storage, 'logout');
    if (!claim) throw new Error('it is due');
    await storage.finishLogout(claim, 4);
    await storage.finishLogout(claim, 9);
    const history = { state: 'done', outcome: 'delivered', attempts: 4, sealed: '', details: 'logout' };
    expect((await storage.logoutsOf(['ada'])).find(({ id }) => id === claim.id)).toMatchObject(history);
    while (await storage.prune({ historyMs: LONG_MS, receiptsMs: LONG_MS }));
    expect(await storage.logoutsOf(['ada'])).toHaveLength(2);
    while (await storage.prune({ historyMs: OVER_MS, receiptsMs: LONG_MS }));
    expect(await storage.logoutsOf(['ada'])).toMatchObject([{ state: 'waiting' }]);
  });

  it('ends the waiting and the parked logouts of a user who was erased', async () => {
    await storage.addLogouts([newLogout(), newLogout('also ada'), newLogout()]);
    await storage.park(await claimOne(storage, 'logout'), 'a hint', FAILED);
    await storage.addLogouts([newLogout('bob')]);
    expect(await storage.supersedeLogouts(['ada', 'also ada'])).toBe(3);
    expect(await storage.supersedeLogouts(['ada', 'also ada'])).toBe(0);
    expect(await storage.counts('logout')).toMatchObject({ waiting: 1, parked: 0 });
    const outcomes = (await storage.logoutsOf(['ada', 'also ada'])).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['superseded', 'superseded', 'superseded']);
  });

  it('gives out nothing of a kind that pauses, in no process, and shortens no pause', async () => {
    await storage.addLogouts([newLogout()]);
    await add('r', 'ada');
    await storage.pause('logout', LONG_MS);
    await storage.pause('logout', 1);
    await sleep(5);
    await expectNothingDue('logout', await again());
    await storage.giveBack(await claimNext(storage, 'erasure'));
    await storage.pause('erasure', 100);
    const from = Date.now();
    expect(subjectsOf(await claimNext(storage, 'erasure'))).toEqual(['ada']);
    expect(Date.now() - from).toBeGreaterThan(50);
  });

  // ---- erasures

  it('keeps a single erasure once, and its receipt', async () => {
    expect(await add('r', 'ada')).toMatchObject({ added: 1 });
    expect(await add('r', 'ada')).toMatchObject({ added: 0 });
    const claim = await claimOne(storage, 'erasure');
    const state = { isList: false, complete: true, started: false, canceled: false, paused: false, total: 1 };
    expect(claim).toMatchObject({
      kind: 'erasure',
      subject: 'ada',
      sealed: 'sealed ada',
      uncertain: undefined,
    });
    const known = { key: referenceKey('r'), ...ADMIN, ...state, finishedAt: undefined };
    expect(claim.reference).toMatchObject(known);
    await add('unsent', 'bob');
    expect(await storage.markSending(claim, 'sent')).toBe(true);
    expect(await storage.reference('r')).toMatchObject({ started: true, parked: 0, retrying: undefined });
    expect(await storage.reference('unsent')).toMatchObject({ started: false });
    const { isNew, finished } = await storage.finishErasure(claim, 'erased', 2, '{"loggedOut":true}');
    const counts = { erased: 1, 'not-found': 0, vetoed: 0, canceled: 0 };
    expect([isNew, finished]).toMatchObject([true, { reference: 'r', total: 1, counts }]);
    expect(typeof finished?.finishedAt).toBe('number');
    expect(await storage.finishErasure(claim, 'not-found', 9, '')).toEqual(NOT_NEW);
    const job = { subject: 'ada', outcome: 'erased', attempts: 2, sealed: '', details: '{"loggedOut":true}' };
    expect(await storage.receipts('r', 10)).toMatchObject([{ job, reference: { ...ADMIN, counts } }]);
    expect(await add('r', 'ada')).toMatchObject({ added: 0 });
    expect(await storage.reference('another')).toBeUndefined();
  });

  it('claims nothing of a list before its last part is stored, and single users before lists', async () => {
    await addList('list', 'a', 'first')('ada', 'bob', 'ada');
    expect(await addList('list', 'a')('bob', 'carol')).toMatchObject({ added: 1, completed: false });
    expect((await storage.claim('erasure', 10)).claims).toEqual([]);
    const last = addList('list', 'a', 'last');
    expect(await last('dan')).toMatchObject({ added: 1, completed: true });
    expect(await last('dan')).toMatchObject({ added: 0, completed: false });
    await add('one', 'zoe');
    const { claims } = await storage.claim('erasure', 10);
    expect(claims[0]).toMatchObject({ subject: 'zoe', reference: { reference: 'one', isList: false } });
    expect(subjectsOf(claims)).toEqual(['ada', 'bob', 'carol', 'dan', 'zoe']);
    expect(claims[1]?.reference).toMatchObject({ reference: 'list', isList: true, complete: true, total: 4 });
  });

  it('claims only the users of the list that a guest works on, once the list is stored', async () => {
    await add('one', 'zoe');
    await addAll('other', 'yan');
    await addList('own', 'a', 'first')('ada');
    const claim = () => storage.claim('erasure', 10, undefined, 'own');
    expect(await claim()).toEqual({ claims: [], nextMs: undefined });
    await addList('own', 'a', 'last')('bob');
    expect(subjectsOf((await claim()).claims)).toEqual(['ada', 'bob']);
  });

  it('refuses users for a reference that stands for something else, and stores nothing of them', async () => {
    await add('single', 'ada');
    await addList('open', 'a', 'first')('ada');
    await addAll('closed', 'ada');
    await add('canceled', 'ada');
    await cancelAll(storage, 'canceled');
    const anonymize = { ...single('single'), mode: 'anonymize' } as const;
    const refusal = { conflict: 'mode', reference: { mode: 'delete' } };
    expect(await addErasures(storage, anonymize, users('single', 'bob'))).toMatchObject(refusal);
    expect(await add('canceled', 'bob')).toMatchObject({ conflict: 'canceled' });
    expect(await add('open', 'bob')).toMatchObject({ conflict: 'incomplete' });
    expect(await addList('open', 'b')('bob')).toMatchObject({ conflict: 'other-reader' });
    expect(await addAll('closed', 'bob')).toMatchObject({ conflict: 'complete' });
    expect(await storage.erasuresOf(['bob'], 'open')).toEqual([]);
    expect(await addAll('closed', 'ada')).toMatchObject({ added: 0, completed: false });
    expect(await add('closed', 'bob')).toMatchObject({ added: 1 });
  });

  it('gives a list to the last call that began to read it', async () => {
    await addList('r', 'a', 'first')('ada', 'bob');
    expect(await addList('r', 'b', 'first')('ada')).toMatchObject({ added: 0 });
    const late = await addList('r', 'a', 'last')('carol');
    expect(late).toMatchObject({ conflict: 'other-reader' });
    expect(await storage.reference('r')).toMatchObject({ complete: false, total: 2 });
    expect(await addList('r', 'b', 'last')()).toMatchObject({ completed: true });
  });

  it('claims and sends nothing of a paused reference until it is resumed', async () => {
    await add('single', 'ada', 'bob');
    await addAll('list', 'carol', 'dan');
    const { claims } = await storage.claim('erasure', 3, LONG_MS);
    expect(subjectsOf(claims)).toHaveLength(3);
    for (const reference of ['single', 'list']) {
      expect(await setPaused(storage, reference, true)).toBe(true);
      expect(await storage.reference(reference)).toMatchObject({ paused: true });
    }
    expect(await add('single', 'zoe')).toMatchObject({ added: 1 });
    for (const claim of claims) expect(await storage.markSending(claim, 'sent')).toBe(false);
    await storage.giveBack(claims);
    await expectNothingDue('erasure');
    await sleep(50);
    const from = Date.now();
    for (const reference of ['single', 'list']) expect(await setPaused(storage, reference, false)).toBe(true);
    const again = await claimNext(storage, 'erasure');
    expect(subjectsOf(again)).toEqual(['ada', 'bob', 'carol', 'dan', 'zoe']);
    const resumedMs = Date.now() - from;
    for (const { ageMs } of again) expect(ageMs).toBeLessThanOrEqual(resumedMs + 2);
    for (const claim of again) expect(await storage.markSending(claim, 'sent')).toBe(true);
    expect(await setPaused(storage, 'another', true)).toBe(false);
  });

  it('changes no reference that is not as the caller has read it, and sends nothing of it', async () => {
    await add('r', 'ada');
    const read = await storage.reference('r');
    const claim = await claimOne(storage, 'erasure');
    if (!read) throw new Error('no such reference');
    expect(await storage.setPaused(read, true, newMark())).toBe(true);
    expect(await storage.setPaused(read, true, newMark())).toBe(false);
    const request = { ...single('r'), known: read, mark: newMark() };
    expect(await storage.addErasures(request, users('r', 'bob'))).toMatchObject({ conflict: 'changed' });
    expect(await storage.cancelErasures(read, newMark())).toMatchObject({ more: true });
    expect(await storage.reference('r')).toMatchObject({ paused: true, canceled: false, total: 1 });
    await setPaused(storage, 'r', false);
    expect(await storage.markSending(claim, 'sent')).toBe(false);
    const unknown = { ...request, reference: 'unknown' };
    expect(await storage.addErasures(unknown, users('unknown', 'bob'))).toMatchObject({
      conflict: 'changed',
    });
    expect(await storage.reference('unknown')).toBeUndefined();
  });

  it('says which erasure of a reference is retried, and retries the parked ones', async () => {
    await addAll('r', 'ada', 'bob', 'carol');
    const lost = await claimNext(storage, 'erasure', 1);
    const claims = await claimNext(storage, 'erasure');
    for (const claim of lost) expect(await storage.markSending(claim, 'sent')).toBe(false);
    for (const claim of claims)
      if (claim.subject === 'ada') await storage.postpone(claim, LONG_MS, FAILED);
      else await storage.park(claim, 'a hint', { ...FAILED, uncertain: 'sent' });
    const retrying = { subject: 'ada', failures: 2, cause: '503' };
    expect(await storage.reference('r')).toMatchObject({ parked: 2, retrying, finishedAt: undefined });
    expect(await storage.counts('erasure')).toMatchObject({ waiting: 1, parked: 2 });
    let retried = 0;
    for (let some = -1; some !== 0; retried += some) some = await storage.retryErasures('r');
    expect(retried).toBe(2);
    const due = await claimNext(storage, 'erasure');
    expect(subjectsOf(due)).toEqual(['bob', 'carol']);
    expect(due[0]).toMatchObject({ failures: 0, hint: undefined, settledAt: undefined, uncertain: 'sent' });
  });

  it('removes what was not sent of a canceled list in steps, and keeps what is uncertain', async () => {
    const names = Array.from({ length: 1_203 }, (_, n) => `user-${n}`);
    await addList('r', 'a', 'first')(...names.slice(0, 450));
    await addList('r', 'a')(...names.slice(450, 900));
    await addList('r', 'a', 'last')(...names.slice(900));
    const { claims } = await storage.claim('erasure', 3, LONG_MS);
    const [sent, parked, unsent] = claims;
    if (!sent || !parked || !unsent) throw new Error('three are due');
    for (const claim of [sent, parked]) expect(await storage.markSending(claim, 'sent')).toBe(true);
    await storage.park(parked, 'a hint', { ...FAILED, uncertain: 'sent' });
    expect(await cancelAll(storage, 'r')).toEqual([]);
    const counts = { erased: 0, 'not-found': 0, vetoed: 0, canceled: 1_202 };
    expect(await storage.reference('r')).toMatchObject({ canceled: true, total: 1_203, counts, parked: 0 });
    expect(await storage.markSending(unsent, 'sent')).toBe(false);
    expect(await finish(unsent)).toEqual(NOT_NEW);
    const canceled = { subject: parked.subject, outcome: 'canceled', sealed: '', uncertain: 'sent' };
    expect((await storage.receipts('r', 10)).map(({ job }) => job)).toMatchObject([canceled]);
    await storage.postpone(sent, 0, { ...FAILED, uncertain: 'sent' });
    const again = await claimOne(storage, 'erasure');
    expect(await storage.markSending(again, 'sent')).toBe(true);
    const { finished } = await finish(again, 'not-found');
    expect(finished?.counts).toEqual({ ...counts, 'not-found': 1 });
  });

  it('finishes a canceled list when nothing of it is left, and cancels no finished one', async () => {
    await addList('r', 'a', 'first')('ada', 'bob');
    await setPaused(storage, 'r', true);
    expect(await cancelAll(storage, 'r')).toMatchObject([{ total: 2, canceled: true, paused: false }]);
    await addAll('done', 'ada');
    await finish(await claimOne(storage, 'erasure'));
    expect(await cancelAll(storage, 'done')).toEqual([]);
    expect(await storage.reference('done')).toMatchObject({ canceled: false });
    expect(await setPaused(storage, 'done', true)).toBe(false);
  });

  it('counts each user once, and reports one end, though two processes finish them all', async () => {
    await addAll('r', ...Array.from({ length: 20 }, (_, n) => `user-${n}`));
    const other = await again();
    const { claims } = await storage.claim('erasure', 20);
    const ends = await Promise.all(
      claims.flatMap((claim) => [storage, other].map((each) => each.finishErasure(claim, 'erased', 1, ''))),
    );
    expect(ends.filter(({ isNew }) => isNew)).toHaveLength(20);
    expect(ends.filter(({ finished }) => finished)).toHaveLength(1);
    expect((await storage.reference('r'))?.counts.erased).toBe(20);
  });

  it('begins a finished reference anew with a single user', async () => {
    await add('r', 'ada');
    await finish(await claimOne(storage, 'erasure'), 'vetoed');
    await addErasures(storage, { ...single('r'), requestedBy: 'another' }, users('r', 'bob'));
    const begun = { finishedAt: undefined, total: 2, requestedBy: 'another' };
    expect(await storage.reference('r')).toMatchObject(begun);
    const { finished } = await finish(await claimOne(storage, 'erasure'));
    expect(finished).toMatchObject({ total: 2, counts: { vetoed: 1, erased: 1 } });
  });

  it('knows a user under the hashes of former keys', async () => {
    await add('r', 'old');
    const renamed = users('r', 'new').map((user) => ({ ...user, formerIds: [erasureId('r', 'old')] }));
    expect(await addErasures(storage, single('r'), renamed)).toMatchObject({ added: 0 });
    const open = { job: { subject: 'old', state: 'waiting' }, reference: { reference: 'r', mode: 'delete' } };
    expect(await storage.erasuresOf(['new', 'old'], 'open')).toMatchObject([open]);
    await finish(await claimOne(storage, 'erasure'));
    expect(await addErasures(storage, single('r'), renamed)).toMatchObject({ added: 0 });
    const [receipt] = await storage.erasuresOf(['new', 'old'], 'done');
    expect(receipt).toMatchObject({ job: { subject: 'old' }, reference: { reference: 'r' } });
  });

  it('says which erasures of a user are open, and how they and their references stand', async () => {
    await add('running', 'ada', 'parked');
    await add('paused', 'ada');
    await setPaused(storage, 'paused', true);
    const claims = await claimNext(storage, 'erasure');
    for (const claim of claims) if (claim.subject === 'parked') await storage.park(claim, 'a hint', FAILED);
    await addList('incomplete', 'a', 'first')('ada');
    await add('done', 'ada');
    await finish(await claimOne(storage, 'erasure'));
    const found = await storage.erasuresOf(['ada', 'parked', 'nobody'], 'open');
    const texts = found.map(
      ({ job: { subject, state }, reference: { reference, complete, paused } }) =>
        `${subject} ${reference} ${state}${complete ? '' : ' incomplete'}${paused ? ' paused' : ''}`,
    );
    const expected = [
      'ada incomplete waiting incomplete',
      'ada paused waiting paused',
      'ada running waiting',
      'parked running parked',
    ];
    expect(texts.sort()).toEqual(expected);
  });

  it('lists references from the newest to the oldest, and receipts by id, in pages', async () => {
    for (const reference of ['a', 'b', 'c']) {
      await addAll(reference, 'ada', 'bob', 'carol');
      await sleep(2); // requested in this order
    }
    const first = await storage.references(2);
    expect(first.map(({ reference }) => reference)).toEqual(['c', 'b']);
    expect((await storage.references(2, first[1])).map(({ reference }) => reference)).toEqual(['a']);
    await finishAll();
    const page = await storage.receipts('a', 2);
    const rest = await storage.receipts('a', 2, page[1]?.job.id);
    expect([...page, ...rest].map(({ job }) => job.subject)).toEqual(['ada', 'bob', 'carol']);
    expect(await storage.erasuresOf(['ada', 'bob'], 'done')).toHaveLength(6);
  });

  it('returns an overdue reference once for each age, whichever process asks', async () => {
    await add('r', 'ada');
    await add('done', 'bob');
    for (const claim of await claimNext(storage, 'erasure')) if (claim.subject === 'bob') await finish(claim);
    const other = await again();
    const overdue = async (...agesMs: number[]): Promise<string[]> => {
      const both = await Promise.all([storage, other].map((each) => each.claimOverdue(agesMs)));
      return both.flat().map(({ reference }) => reference);
    };
    await sleep(5);
    expect(await overdue(LONG_MS)).toEqual([]);
    expect(await overdue(1, 2, LONG_MS)).toEqual(['r']);
    await until(
      () => overdue(1, 2, 30, LONG_MS),
      (found) => found.length > 0,
    );
    expect(await overdue(1, 2, 30, LONG_MS)).toEqual([]);
    const { requestedAt } = (await storage.reference('r')) ?? {};
    expect(await storage.counts('erasure')).toEqual({ waiting: 1, parked: 0, oldestAt: requestedAt });
  });

  it('keeps the receipts of a finished reference for their time, and what is not finished for ever', async () => {
    await addAll('done', 'ada', 'bob');
    await finishAll();
    expect((await storage.counts('erasure')).oldestAt).toBeUndefined();
    await add('open', 'ada');
    while (await storage.prune({ historyMs: OVER_MS, receiptsMs: LONG_MS }));
    expect(await storage.receipts('done', 10)).toHaveLength(2);
    while (await storage.prune({ historyMs: LONG_MS, receiptsMs: OVER_MS }));
    expect((await storage.references(10)).map(({ reference }) => reference)).toEqual(['open']);
    expect(await storage.erasuresOf(['ada', 'bob'], 'done')).toEqual([]);
  });

  // ---- sessions

  it('gives out a session to look for once, until its lease ends or it is there again', async () => {
    await storage.registerSession(session('early'), 1_000, 0);
    await storage.registerSession(session('late'), 2_000, LONG_MS);
    const [due] = await storage.dueSessions(10, 50);
    expect(due).toMatchObject({ ...session('early'), expiresAt: 1_000 });
    const other = await again();
    const next = await until(
      async () => (await other.dueSessions(10))[0],
      (found) => found !== undefined,
    );
    if (!due || !next) throw new Error('it is due');
    expect(next.token).not.toBe(due.token);
    await storage.postponeSession(due, 0); // its lease is lost
    expect(await storage.dueSessions(10)).toEqual([]);
    await storage.postponeSession(next, 0);
    expect(await storage.dueSessions(10)).toMatchObject([{ id: 'early' }]);
    await storage.registerSession(session('early'), 3_000, LONG_MS);
    await storage.postponeSession(next, 0); // somebody has registered it since
    expect(await storage.dueSessions(10)).toEqual([]);
  });

  it('takes times with fractions of a millisecond', async () => {
    await storage.registerSession(session('s'), 1_000.3, 0.3);
    const [due] = await until(
      () => storage.dueSessions(10, LONG_MS + 0.3),
      ({ length }) => length > 0,
    );
    if (!due) throw new Error('it is due');
    await storage.postponeSession(due, LONG_MS + 0.3);
    expect(await storage.dueSessions(10)).toEqual([]);
    await storage.addLogouts([newLogout()]);
    const [claim] = (await storage.claim('logout', 1, LONG_MS + 0.3)).claims;
    if (!claim) throw new Error('it is due');
    await storage.postpone(claim, LONG_MS + 0.3, claim);
    await storage.pause('logout', LONG_MS + 0.3);
    expect(await storage.claim('logout', 1)).toMatchObject({ claims: [] });
  });

  it('ends a session with its logout, and remembers the end until the session is found', async () => {
    await storage.registerSession(session('s'), 1_000, 0);
    const [logout, another, last] = [newLogout(), newLogout(), newLogout()];
    expect(await storage.endSession(session('s'), logout)).toBe(true);
    expect(await storage.endSession(session('s'), another)).toBe(false);
    expect((await storage.logoutsOf(['ada'])).map(({ id }) => id)).toEqual([logout.id]);
    expect(await storage.dueSessions(10)).toEqual([]);
    expect(await storage.registerSession(session('s'), 1_000, 0)).toBe(false);
    expect(await storage.registerSession(session('s'), 1_000, 0, true)).toBe(true);
    expect(await storage.dueSessions(10)).toMatchObject([{ id: 's' }]);
    expect(await storage.endSession(session('s'), last)).toBe(true);
    expect(await storage.counts('logout')).toMatchObject({ waiting: 2, parked: 0 });
  });

  it('ends a session again when the caller has seen it alive since the last end', async () => {
    expect(await storage.endSession(session('s'), newLogout())).toBe(true);
    await sleep(20); // the end is older than the millisecond in which it was seen
    expect(await storage.endSession(session('s'), newLogout(), undefined, LONG_MS)).toBe(false);
    expect(await storage.endSession(session('s'), newLogout(), undefined, 1)).toBe(true);
    expect(await storage.counts('logout')).toMatchObject({ waiting: 2, parked: 0 });
  });

  it('ends a session that it does not know, and forgets one without a logout', async () => {
    expect(await storage.endSession(session('unknown'), newLogout())).toBe(true);
    expect(await storage.registerSession(session('unknown'), 1_000, 0)).toBe(false);
    await storage.registerSession(session('s'), 1_000, 0);
    expect(await storage.endSession(session('s'), undefined)).toBe(true);
    expect(await storage.dueSessions(10)).toEqual([]);
    expect(await storage.registerSession(session('s'), 1_000, 0)).toBe(true);
    expect(await storage.counts('logout')).toMatchObject({ waiting: 1, parked: 0 });
  });

  it('does not end a session that was registered after a sweep had it', async () => {
    await storage.registerSession(session('s'), 1_000, 0);
    const [due] = await storage.dueSessions(10);
    await storage.registerSession(session('s'), 2_000, 0);
    expect(await storage.endSession(session('s'), newLogout(), due?.token)).toBe(false);
    const [again] = await storage.dueSessions(10);
    expect(await storage.endSession(session('s'), newLogout(), again?.token)).toBe(true);
    expect(await storage.counts('logout')).toMatchObject({ waiting: 1, parked: 0 });
  });

  it('reports the end of a session once, though four processes see it at the same time', async () => {
    const storages = [storage, await again(), await again(), await again()];
    for (let n = 0; n < 20; n += 1) {
      await storage.registerSession(session(`s${n}`), 1_000, LONG_MS);
      const ends = storages.map((each) => each.endSession(session(`s${n}`), newLogout(`user-${n}`)));
      expect((await Promise.all(ends)).filter(Boolean)).toHaveLength(1);
    }
    expect(await storage.counts('logout')).toMatchObject({ waiting: 20, parked: 0 });
  });

  // ---- many processes

  it('takes no more slots than the rate limit has, in any window, over several processes', async () => {
    const [slots, perMs] = [5, 300];
    const taken: { readonly before: number; readonly after: number }[] = [];
    const take = async (each: Storage): Promise<void> => {
      while (taken.length < 4 * slots) {
        const before = Date.now();
        const waitMs = await each.takeSlot(slots, perMs);
        if (waitMs === 0) taken.push({ before, after: Date.now() });
        expect(waitMs).toBeLessThanOrEqual(perMs);
        await sleep(Math.min(waitMs, 20)); // sooner than it was told
      }
    };
    await Promise.all([storage, await again(), await again()].map(take));
    const before = taken.map((slot) => slot.before).sort((one, other) => one - other);
    const after = taken.map((slot) => slot.after).sort((one, other) => one - other);
    const windows = before.slice(0, -slots).map((from, n) => (after[n + slots] ?? 0) - from);
    expect(Math.min(...windows)).toBeGreaterThanOrEqual(perMs - 2);
  });

  it('gives each of 400 jobs to one of four processes', async () => {
    await storage.addLogouts(newLogouts(400));
    const storages = [storage, await again(), await again(), await again()];
    const ids: string[] = [];
    const work = async (each: Storage): Promise<void> => {
      while ((await storage.counts('logout')).waiting > 0) {
        const { claims } = await each.claim('logout', 16, LONG_MS);
        ids.push(...claims.map(({ id }) => id));
        await Promise.all(claims.map((claim) => each.finishLogout(claim, 1)));
      }
    };
    await Promise.all(storages.map(work));
    expect(ids).toHaveLength(400);
    expect(new Set(ids).size).toBe(400);
  });

  it('shows nothing of one application to another, and marks the birth of each', async () => {
    const other = await open(`contract-${randomUUID()}`);
    const births = [await storage.birth(), await (await again()).birth(), await other.birth()];
    expect(births).toEqual([
      expect.stringMatching(/./u),
      births[0],
      expect.not.stringMatching(births[0] ?? ''),
    ]);
    await storage.addLogouts([newLogout()]);
    await add('r', 'ada');
    await storage.registerSession(session('s'), 1_000, 0);
    await storage.pause('erasure', LONG_MS);
    await storage.takeSlot(1, LONG_MS);
    for (const kind of ['logout', 'erasure'] as const)
      expect(await other.claim(kind, 10)).toEqual({ claims: [], nextMs: undefined });
    expect(await other.counts('logout')).toMatchObject({ waiting: 0, parked: 0 });
    expect(await other.supersedeLogouts(['ada'])).toBe(0);
    expect(await other.references(10)).toEqual([]);
    expect(await other.erasuresOf(['ada'], 'open')).toEqual([]);
    expect(await other.dueSessions(10)).toEqual([]);
    expect(await other.takeSlot(1, LONG_MS)).toBe(0);
    expect(await addErasures(other, single('r'), users('r', 'ada'))).toMatchObject({ added: 1 });
    expect(subjectsOf(await claimNext(other, 'erasure'))).toEqual(['ada']);
  });

  it('rejects every call once it is closed, and throws none', async () => {
    const other = await open(`contract-${randomUUID()}`);
    await other.close();
    const calls = [other.addLogouts([newLogout()]), other.claim('logout', 1), other.birth()];
    for (const call of await Promise.allSettled(calls))
      expect(call).toEqual({ status: 'rejected', reason: expect.any(StorageError) });
  });

  if (kept.transaction)
    it("keeps erasures of the host's own transaction if it is committed, and only then", async () => {
      class Rollback extends Error {}
      const request = async (reference: string, end: () => void): Promise<void> => {
        await kept.transaction?.(async (transaction) => {
          const within = storage.within?.(transaction);
          expect(await within?.addErasures(single(reference), users(reference, 'ada'))).toMatchObject({
            added: 1,
          });
          expect(await within?.erasuresOf(['ada'], 'open')).toHaveLength(1);
          expect(await within?.reference(reference)).toMatchObject({ total: 1 });
          expect(await storage.reference(reference)).toBeUndefined();
          expect((await storage.claim('erasure', 10)).claims).toEqual([]);
          end();
        });
      };
      const rolledBack = request('rolled back', () => {
        throw new Rollback();
      });
      await expect(rolledBack).rejects.toThrow(Rollback);
      expect(await storage.reference('rolled back')).toBeUndefined();
      await request('committed', () => undefined);
      expect(subjectsOf(await claimNext(storage, 'erasure'))).toEqual(['ada']);
    });
}
