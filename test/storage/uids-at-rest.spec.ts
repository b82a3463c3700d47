import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DebateSpaceOutbox, DebateSpaceService } from 'nestjs-debate-space';
import { lmdbStorage } from 'nestjs-debate-space/lmdb';
import { RegistryWriter } from '../../libs/debate-space/src/live-sessions/registry-writer.js';
import type { LogoutContext, LogoutJob } from '../../libs/debate-space/src/logout/logout.js';
import type { LogoutQueue } from '../../libs/debate-space/src/logout/queue/logout-queue.js';
import { SessionRegistry } from '../../libs/debate-space/src/live-sessions/session-registry.js';
import { Containment } from '../../libs/debate-space/src/async/containment.js';
import { Secret } from '../../libs/debate-space/src/secrets/secret.js';
import { firstEvent } from 'debate-space-fixtures/events.js';
import { keptPlaces, type KeptPlace } from 'debate-space-fixtures/kept-places.js';
import { plainUidCipher } from '../../libs/debate-space/src/secrets/uid-cipher.js';
import { outboxContext } from 'debate-space-fixtures/outbox-context.js';
import { openOutbox } from 'debate-space-fixtures/outbox-engines.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { filesOf, formsOf, tracesOf } from 'debate-space-fixtures/traces.js';

const LONG = 60_000;
const none = { attempts: 0, rejections: 0 };
/** Of every uid here a part, with characters that each encoding writes in its own way. */
const marker = 'Zoë "Ångström" /+?🦊';
const uidOf = (id: string): string => `${id} ${marker} ${id}`;

for (const kind of keptPlaces) {
  kind.describe(`a uid ${kind.name}`, () => {
    const opened: LogoutQueue[] = [];
    let place: KeptPlace;
    beforeEach(async () => {
      place = await kind.take();
    });
    afterEach(async () => {
      for (const outbox of opened.splice(0)) await outbox.close();
      await place.leave();
    });

    async function open(context: LogoutContext = outboxContext()): Promise<LogoutQueue> {
      const outbox = await openOutbox(place.engine(), context);
      opened.push(outbox);
      return outbox;
    }

    const traces = async (): Promise<readonly string[]> => tracesOf(marker, await place.kept());

    async function pend(outbox: LogoutQueue, ids: readonly string[]): Promise<void> {
      await outbox.add(ids.map((id) => ({ id, uid: uidOf(id), reason: 'destroyed', endedAt: 1 })));
    }

    const numbered = (name: string, count: number): string[] =>
      Array.from({ length: count }, (_, n) => `000000000000001-${name}-${n}`);
    const uids = (jobs: readonly LogoutJob[]): string[] => jobs.map(({ entry }) => entry.uid);

    it('would be found if it were there', async () => {
      const uids = plainUidCipher(outboxContext().uids);
      await pend(await open(outboxContext({ uids })), ['a']);
      expect(await traces()).not.toEqual([]);
    });

    it('is not found, while it waits or later', async () => {
      const outbox = await open();
      const [finished = [], parked = [], superseded = [], retried = [], dropped = [], waiting = []] = [
        'finished',
        'parked',
        'superseded',
        'retried',
        'dropped',
        'waiting',
      ].map((name) => numbered(name, 40));
      const tried = [...finished, ...parked, ...superseded, ...retried];
      await pend(outbox, tried);
      expect(uids(await outbox.claim(160, LONG)).toSorted()).toEqual(tried.map(uidOf).toSorted());
      await pend(outbox, [...dropped, ...waiting]);
      expect(await traces()).toEqual([]);

      for (const id of [...finished, ...superseded]) await outbox.retry(id, { ...none, cause: '503' }, LONG);
      for (const id of [...parked, ...retried]) await outbox.park(id, { ...none, cause: '404' }, 'a hint');
      expect(await outbox.parked(1)).toMatchObject([{ entry: { uid: uidOf(parked[0] ?? '') } }]);
      for (const id of retried) expect(await outbox.retryParked(id)).toBe(true);
      expect((await outbox.ofUser(uidOf(waiting[0] ?? ''))).waiting).toMatchObject([
        { entry: { uid: uidOf(waiting[0] ?? '') } },
      ]);
      expect(await traces()).toEqual([]);

      for (const id of finished) await outbox.finish(id, 2);
      for (const id of superseded) expect(await outbox.supersede(uidOf(id), LONG)).toBe(1);
      for (const id of dropped) await outbox.drop(id);
      for (const id of parked) await outbox.discard(id);
      expect((await outbox.ofUser(uidOf(finished[0] ?? ''))).finished).toHaveLength(1);
      expect(await traces()).toEqual([]);
      await outbox.close();
      expect(await traces()).toEqual([]);
    });

    it('is parked with the hint when another storage key has sealed it, and delays no other', async () => {
      await pend(await open(), ['a', 'b']);
      const other = await open(outboxContext({}, 'another storage key'));
      await pend(other, ['c']);
      const jobs = [...(await other.claim(2, LONG)), ...(await other.claim(2, LONG))];
      expect(uids(jobs)).toEqual([uidOf('c')]);
      expect(await other.counts()).toEqual({ pending: 1, parked: 2 });
      const parked = await other.parked(10);
      expect(uids(parked)).toEqual(['', '']);
      expect(parked[0]?.hint).toContain('storageKey');
      expect(await other.retryParked('a')).toBe(false);
      expect(await other.ofUser(uidOf('a'))).toEqual({ waiting: [], finished: [] });
      expect(await other.discard('b')).toBe(true);
    });

    it('is sent when its storage key is given back', async () => {
      const mine = await open();
      await pend(mine, ['a']);
      expect(await (await open(outboxContext({}, 'another storage key'))).claim(10, LONG)).toEqual([]);
      expect(uids(await mine.parked(10))).toEqual([uidOf('a')]);
      expect(await mine.retryParked('a')).toBe(true);
      expect(uids(await mine.claim(10, LONG))).toEqual([uidOf('a')]);
    });
  });
}

for (const kind of keptPlaces) {
  kind.describe(`a live session ${kind.name}`, () => {
    it('names neither its user nor its id, as long as it lives or later', async () => {
      const place = await kind.take();
      const storage = await place
        .engine()
        .open({ namespace: 'app', families: ['session'], contained: () => undefined });
      try {
        const traces = async (): Promise<readonly string[]> => tracesOf(marker, await place.kept());
        const registry = new SessionRegistry(storage, [new Secret('a storage key of a test')]);
        const faults: unknown[] = [];
        const containment = new Containment((event) => faults.push(event));
        const find = () => Promise.resolve([]);
        const sessions = new RegistryWriter(registry, find, containment);
        for (const name of ['a', 'b']) sessions.seen(`alive ${uidOf(name)}`, uidOf(name), Date.now() + LONG);
        sessions.seen(`gone ${uidOf('c')}`, uidOf('c'), Date.now() - LONG);
        await sessions.idle();
        expect(await traces()).toEqual([]);
        const [claimed] = await registry.claimExpired(10, LONG);
        expect(claimed).toMatchObject({ sid: `gone ${uidOf('c')}`, uid: uidOf('c') });
        expect(await traces()).toEqual([]);
        const reported: string[] = [];
        for (const sid of [`alive ${uidOf('a')}`, `unknown ${uidOf('a')}`])
          await sessions.gone(sid, uidOf('a'), async () => {
            expect(await traces()).toEqual([]);
            reported.push(sid);
          });
        expect(reported).toHaveLength(2);
        await sessions.idle();
        expect(await traces()).toEqual([]);
        expect(faults).toEqual([]);
      } finally {
        await storage.close();
        await place.leave();
      }
    });
  });
}

describe('an app whose secret key is rotated between two runs', () => {
  const rotatedKey = 'the secret key that came after, as long as it must be';
  const [earlier, later] = [scenario(), scenario({ secretKey: rotatedKey })];
  let path: string;
  beforeEach(async () => {
    path = await mkdtemp(join(tmpdir(), 'rotation-'));
    later.afterwards(() => rm(path, { recursive: true }));
  });

  it('loses no logout, has the history of those before, and leaves no uid in the file', async () => {
    const before = await earlier.start({}, { storage: lmdbStorage({ path }) });
    const logOut = (uid: string): Promise<void> => before.app.get(DebateSpaceService).logoutUser(uid);
    const delivered = firstEvent(before.app, 'logout-delivered');
    await logOut(uidOf('delivered'));
    await delivered;
    await earlier.service.goDown();
    for (const id of ['a', 'b', 'c']) await logOut(uidOf(id));
    expect(tracesOf(marker, await filesOf(path))).toEqual([]);
    await earlier.stop();

    const after = await later.start({}, { secretKey: rotatedKey, storage: lmdbStorage({ path }) });
    await later.service.received.waitFor('logout', { count: 3, timeoutMs: 20_000 });
    expect(later.service.received.logouts.toSorted()).toEqual(['a', 'b', 'c'].map(uidOf));
    const outbox = after.app.get(DebateSpaceOutbox);
    expect(await outbox.history(uidOf('delivered'))).toMatchObject([{ state: 'delivered' }]);
    await later.stop();
    expect(tracesOf(marker, await filesOf(path))).toEqual([]);
  });
});

it('tracesOf finds a text in every form', () => {
  for (const [name, form] of formsOf(marker)) {
    const around = [Buffer.from('before '), form, Buffer.from(' after')];
    expect(tracesOf(marker, [Buffer.concat(around)])).toContain(name);
  }
});
