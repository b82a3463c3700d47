import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request } from 'express';
import session from 'express-session';
import { filter, firstValueFrom, take, toArray } from 'rxjs';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import {
  DebateSpaceEvents,
  DebateSpaceOutbox,
  DebateSpaceService,
  type DebateSpaceEvent,
} from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import { keptPlaces, type KeptPlace } from 'debate-space-fixtures/kept-places.js';
import { startService, using } from 'debate-space-fixtures/service.js';
import { SessionHost } from 'debate-space-fixtures/session-host.js';

const [A, B] = ['storage key A of a test', 'storage key B of a test'];
/** A stop while the service is down takes five seconds. */
const TIMEOUT_MS = 60_000;
const LOGOUT = { operation: 'logout' } as const;

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(50);
}

for (const kind of keptPlaces) {
  kind.describe(`the storage key of an app whose data is ${kind.name}`, () => {
    /** The sessions of the host outlive its restarts, as everywhere. */
    let store: session.MemoryStore;
    let place: KeptPlace;
    let service: DebateSpaceSimulator;
    let host: SessionHost | undefined;
    beforeEach(async () => {
      store = new session.MemoryStore();
      [place, service] = await Promise.all([kind.take(), startService({ rateLimit: false })]);
    });
    afterEach(async () => {
      await host?.stop();
      host = undefined;
      await Promise.all([service.stop(), place.leave()]);
    });

    /** The app, started again with other keys. */
    async function run(...storageKey: readonly string[]): Promise<SessionHost> {
      await host?.stop();
      const debateSpace = using(service, {
        session: { store, expiry: true },
        http: { timeoutMs: 2_000 },
        storage: place.engine(),
        storageKey,
      });
      const act = (request: Request) =>
        new Promise((resolve) => {
          request.session.destroy(resolve);
        });
      return (host = await SessionHost.start({ store, act, debateSpace }));
    }

    async function logIn(uid: string): Promise<Browser> {
      const browser = new Browser(host?.url ?? '');
      await browser.post('/login', { uid });
      return browser;
    }
    /** Of a browser that logged in to an earlier run. */
    async function logOut(browser: Browser): Promise<void> {
      expect(await browser.post(`${host?.url}/act`)).toBe('done');
    }

    const nextEvents = (type: DebateSpaceEvent['type'], count = 1): Promise<readonly DebateSpaceEvent[]> => {
      if (!host) throw new Error('the app does not run');
      const { events$ } = host.app.get(DebateSpaceEvents);
      return firstValueFrom(
        events$.pipe(
          filter((event) => event.type === type),
          take(count),
          toArray(),
        ),
      );
    };
    const nextOf = async (type: DebateSpaceEvent['type'], ...uids: readonly string[]): Promise<void> => {
      if (!host) throw new Error('the app does not run');
      const { events$ } = host.app.get(DebateSpaceEvents);
      const of = (uid: string) =>
        events$.pipe(filter((event) => event.type === type && 'uid' in event && event.uid === uid));
      await Promise.all(uids.map((uid) => firstValueFrom(of(uid))));
    };
    const outbox = (): DebateSpaceOutbox => {
      if (!host) throw new Error('the app does not run');
      return host.app.get(DebateSpaceOutbox);
    };
    const statesOf = async (uid: string): Promise<readonly string[]> =>
      (await outbox().history(uid)).map(({ state }) => state);

    async function end(type: DebateSpaceEvent['type'], ...uids: readonly string[]): Promise<void> {
      const event = nextOf(type, ...uids);
      for (const uid of uids) await host?.app.get(DebateSpaceService).logoutUser(uid);
      await event;
    }
    async function endWhileDown(...uids: readonly string[]): Promise<void> {
      await service.goDown();
      for (const uid of uids) await host?.app.get(DebateSpaceService).logoutUser(uid);
    }

    it(
      'is rotated with the former one behind it: all is delivered and found, and each session ends once',
      async () => {
        await run(A);
        const [laptop, phone] = [await logIn('alice'), await logIn('alice')];
        await end('logout-delivered', 'delivered');
        service.faults.add({ kind: 'status', status: 403, ...LOGOUT });
        await end('logout-parked', 'parked');
        service.faults.clear();
        await endWhileDown('waiting-1', 'waiting-2');

        await run(B, A);
        expect(await statesOf('delivered')).toEqual(['delivered']);
        expect(await statesOf('parked')).toEqual(['parked']);
        expect(await statesOf('waiting-1')).toEqual(['pending']);
        const delivered = nextOf('logout-delivered', 'waiting-1', 'waiting-2');
        await service.comeBack();
        await delivered;
        const again = nextOf('logout-delivered', 'parked');
        const [parked, ...others] = await outbox().parked();
        expect([parked?.uid, others]).toEqual(['parked', []]);
        expect(await outbox().retry(parked?.id ?? '')).toBe(true);
        await again;
        const logouts = nextEvents('logout-delivered', 2);
        await logOut(laptop); // registered under A, as the phone is
        await logOut(phone);
        expect(await logouts).toMatchObject([{ uid: 'alice' }, { uid: 'alice' }]);
        for (const uid of ['delivered', 'parked', 'waiting-1', 'waiting-2'])
          expect(await statesOf(uid)).toEqual(['delivered']);
        expect(await outbox().parked()).toEqual([]);
      },
      TIMEOUT_MS,
    );

    it(
      'is taken away too early: what was stored under it is parked with a hint, and holds up nothing else',
      async () => {
        await run(A);
        const phone = await logIn('alice');
        await end('logout-delivered', 'delivered');
        await endWhileDown('left-1', 'left-2');

        await run(B);
        await endWhileDown('new');
        const events = nextEvents('logout-delivered');
        await service.comeBack();
        expect(await events).toMatchObject([{ uid: 'new' }]);
        const hint = expect.stringContaining('another storageKey');
        await until(async () => (await outbox().parked()).length === 2); // they are read when they are due again
        expect(await outbox().parked()).toMatchObject([
          { uid: '', hint },
          { uid: '', hint },
        ]);
        for (const { id } of await outbox().parked()) expect(await outbox().retry(id)).toBe(false);
        for (const uid of ['delivered', 'left-1']) expect(await statesOf(uid)).toEqual([]);
        const last = nextEvents('logout-delivered');
        await logOut(phone);
        expect(await last).toMatchObject([{ uid: 'alice' }]);
        expect(await outbox().parked()).toHaveLength(2);

        await run(B, A);
        const back = nextEvents('logout-delivered', 2);
        for (const { id } of await outbox().parked()) expect(await outbox().retry(id)).toBe(true);
        await back;
        for (const uid of ['delivered', 'left-1', 'left-2', 'new', 'alice'])
          expect(await statesOf(uid)).toEqual(['delivered']);
      },
      TIMEOUT_MS,
    );
  });
}
