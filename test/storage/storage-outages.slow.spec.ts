import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  DebateSpaceErasures,
  DebateSpaceHealth,
  DebateSpaceOutbox,
  DebateSpaceService,
  type DebateSpaceEvent,
  type StorageEngine,
} from 'nestjs-debate-space';
import { Application } from 'nestjs-debate-space/internal';
import { openDriver } from '../../libs/debate-space/src/storage/sqlite-file.js';
import { logInTo } from '#support/browser/browser.js';
import { databaseServers, type DatabasePlace, type RunningServer } from '#support/servers/databases.js';
import { eventsOf, firstEvent } from '#support/hosts/events.js';
import { FlakyStorage } from '#support/storages/flaky-storage.js';
import { scenario } from '#support/hosts/scenario.js';
import { destroySession } from '#support/hosts/session-jobs.js';
import type { SessionHost } from '#support/hosts/session-host.js';

const IS_AWAY = 'the storage does not take logouts; a crash would lose those in memory';
const scene = scenario();

/** Of all apps of a test: Nest has one logger in a process. */
const lines: string[] = [];
beforeEach(() => void lines.splice(0));
const linesWith = (text: string): readonly string[] => lines.filter((line) => line.includes(text));

/** A host, with everything that it says. */
class Running {
  readonly events: DebateSpaceEvent[];
  private constructor(readonly host: SessionHost) {
    this.events = eventsOf(host.app);
  }

  static async start(storage: StorageEngine): Promise<Running> {
    const note = (line: unknown): unknown => lines.push(String(line));
    const logger = { log: note, warn: note, error: note };
    const options = { storage, storageKey: 'the storage key of a test', logout: { storageTimeoutMs: 200 } };
    return new Running(await scene.start({ act: destroySession, logger }, options));
  }

  get app() {
    return this.host.app;
  }

  /** In a browser: nobody is logged out before the answer has come. */
  async logOut(uid: string): Promise<void> {
    const browser = await logInTo(this.host, uid);
    expect(await browser.post('/act')).toBe('done');
    expect(await browser.get('/whoami')).toBe('nobody');
  }

  async logOutAndDeliver(uid: string): Promise<void> {
    const { received } = scene.service;
    const count = received.of('logout').length + 1;
    await this.logOut(uid);
    await received.waitFor('logout', { count, timeoutMs: 60_000 });
    expect(received.logouts).toContain(uid);
  }

  of(type: DebateSpaceEvent['type']): readonly DebateSpaceEvent[] {
    return this.events.filter((event) => event.type === type);
  }

  async problems(): Promise<readonly string[]> {
    const { state, problems } = await this.app.get(DebateSpaceHealth).check();
    expect(state).toBe(problems.length > 0 ? 'degraded' : 'up');
    return problems;
  }

  /** What happens every 1.5 s anyway. */
  look(): Promise<void> {
    return this.app.get(Application, { strict: false }).watch.look();
  }
}

describe('an app whose storage is away', () => {
  it.each(['failing', 'silent'] as const)(
    'answers a logout, delivers it from memory, and says once that the storage is %s and once that it is back',
    async (outage) => {
      const flaky = new FlakyStorage();
      const running = await Running.start(flaky.engineWith(await scene.sqlite()));
      expect(await running.problems()).toEqual([]);
      flaky.state = outage;
      await running.logOutAndDeliver('alice');
      await running.logOutAndDeliver('bob');
      expect(await running.problems()).toEqual(['the storage cannot be read', IS_AWAY]);
      expect(await running.app.get(DebateSpaceOutbox).stats()).toMatchObject({ degraded: true });

      const recovered = firstEvent(running.app, 'storage-recovered');
      flaky.state = 'up';
      await recovered;
      expect(await running.problems()).toEqual([]);
      await running.logOut('carol');
      await scene.stop();
      expect(new Set(scene.service.received.logouts)).toEqual(new Set(['alice', 'bob', 'carol']));
      expect(running.of('storage-degraded')).toEqual([
        { type: 'storage-degraded', cause: expect.stringMatching(/away \(ECONN|did not answer in time/) },
      ]);
      expect(running.of('storage-recovered')).toHaveLength(1);
      expect(linesWith('does not take logouts')).toEqual([
        expect.stringMatching(
          /they are delivered from memory, which a crash would lose, and requests for erasures fail$/,
        ),
      ]);
      expect(linesWith('takes logouts again')).toHaveLength(1);
    },
  );

  it('reports a file of SQLite that another program has locked, and delivers from memory until it is free', async () => {
    const engine = await scene.sqlite();
    const running = await Running.start(engine);
    const { storage, place = '' } = await engine.open('another');
    const program = await openDriver(place);
    program.exec('BEGIN IMMEDIATE');
    expect(await running.problems()).toContain('the storage cannot be read');
    await running.logOutAndDeliver('alice');
    expect(await running.problems()).toContain(IS_AWAY);
    const recovered = firstEvent(running.app, 'storage-recovered');
    program.exec('ROLLBACK');
    program.close();
    await recovered;
    expect(await running.problems()).toEqual([]);
    await storage.close();
  });

  it('delivers a logout, once or twice, of which the storage has lost its answer', async () => {
    const flaky = new FlakyStorage();
    const running = await Running.start(flaky.engineWith(await scene.sqlite()));
    flaky.state = 'cut off';
    await running.logOutAndDeliver('alice');
    flaky.state = 'up';
    await scene.stop();
    expect(new Set(scene.service.received.logouts)).toEqual(new Set(['alice']));
  });

  it('leaves what is in memory at its shutdown to the storage, and the next app delivers it', async () => {
    const flaky = new FlakyStorage();
    const engine = flaky.engineWith(await scene.sqlite());
    const running = await Running.start(engine);
    await scene.service.goDown();
    flaky.state = 'failing';
    for (const uid of ['alice', 'bob']) await running.logOut(uid);
    flaky.state = 'up';
    await scene.stop();
    expect(running.events.at(-1)).toEqual({ type: 'shutdown-incomplete', pending: 2, lost: 0 });
    expect(scene.service.received.logouts).toEqual([]);

    await scene.service.comeBack();
    const next = await Running.start(engine);
    await scene.service.received.waitFor('logout', { count: 2, timeoutMs: 20_000 });
    expect(scene.service.received.logouts.toSorted()).toEqual(['alice', 'bob']);
    expect(next.of('storage-degraded')).toEqual([]);
  });

  it('says how many logouts are lost when it shuts down before the storage is back', async () => {
    const flaky = new FlakyStorage();
    const running = await Running.start(flaky.engineWith(await scene.sqlite()));
    await scene.service.goDown();
    flaky.state = 'failing';
    await running.logOut('alice');
    await scene.stop();
    expect(running.events.at(-1)).toEqual({ type: 'shutdown-incomplete', pending: 1, lost: 1 });
    expect(linesWith('1 of 1 logouts that were not delivered before the shutdown are lost')).toHaveLength(1);
  });

  it('rejects a request for an erasure with its reference, and keeps a logout in memory', async () => {
    const flaky = new FlakyStorage();
    const { app } = await Running.start(flaky.engineWith(await scene.sqlite()));
    flaky.state = 'failing';
    const request = { uid: 'alice', mode: 'delete', reference: 'case 1' } as const;
    const refused = { code: 'ERR_DEBATE_SPACE_STORAGE', reference: 'case 1' };
    await expect(app.get(DebateSpaceErasures).request(request)).rejects.toMatchObject(refused);
    const delivered = firstEvent(app, 'logout-delivered');
    await app.get(DebateSpaceService).logoutUser('bob');
    expect(await delivered).toMatchObject({ uid: 'bob' });
  });
});

for (const kind of databaseServers) {
  kind.describe(`an app whose storage is in ${kind.name}`, () => {
    let server: RunningServer;
    let place: DatabasePlace;
    beforeAll(async () => {
      server = await kind.start();
    });
    afterAll(() => server.stop());

    /** Two processes of one app, in a place of their own. */
    async function startTwo(): Promise<readonly [Running, Running]> {
      place = await server.place();
      return [await Running.start(place.engine), await Running.start(place.engine)];
    }
    const dropTables = async (tables = place.tables): Promise<void> => {
      for (const table of tables) await server.run(`DROP TABLE ${table}`);
    };

    it('delivers from memory while the server is stopped, and from the tables when it is started', async () => {
      const both = await startTwo();
      await both[0].logOutAndDeliver('before');
      await server.crash();
      for (const [n, running] of both.entries()) await running.logOutAndDeliver(`away ${n}`);
      for (const running of both) expect(await running.problems()).toContain(IS_AWAY);
      const recovered = both.map(({ app }) => firstEvent(app, 'storage-recovered'));
      await server.restart();
      await Promise.all(recovered);
      for (const running of both) {
        expect(running.of('storage-degraded')).toHaveLength(1);
        expect(running.of('storage-recovered')).toHaveLength(1);
        expect(await running.problems()).toEqual([]);
      }
      const after = Array.from({ length: 20 }, (_, n) => `after ${n}`);
      for (const uid of after) await both[0].logOut(uid);
      await scene.service.received.waitFor('logout', { count: 23, timeoutMs: 60_000 });
      await scene.stop();
      const all = ['before', 'away 0', 'away 1', ...after];
      expect(new Set(scene.service.received.logouts)).toEqual(new Set(all));
      for (const running of both) {
        // The limit of 200 ms is short for a busy machine.
        for (const event of running.of('storage-degraded').slice(1))
          expect(event).toMatchObject({ cause: 'it did not answer in time' });
        expect(running.of('storage-emptied')).toEqual([]);
      }
    });

    it('starts while the server does not answer, and works from its tables when it does', async () => {
      place = await server.place();
      await server.crash();
      const running = await Running.start(place.engine);
      expect(linesWith('does not take logouts')).toHaveLength(1);
      expect(await running.problems()).toEqual(['the storage cannot be read', IS_AWAY]);
      const request = { uid: 'alice', mode: 'delete', reference: 'case 1' } as const;
      const erasures = running.app.get(DebateSpaceErasures);
      const refused = { code: 'ERR_DEBATE_SPACE_STORAGE', reference: 'case 1', unreachable: true };
      await expect(erasures.request(request)).rejects.toMatchObject(refused);
      await running.logOutAndDeliver('bob');
      const recovered = firstEvent(running.app, 'storage-recovered');
      await server.restart();
      await recovered;
      expect(await running.problems()).toEqual([]);
      const finished = firstEvent(running.app, 'erasure-finished');
      await erasures.request(request);
      expect(await finished).toMatchObject({ reference: 'case 1' });
      await running.logOutAndDeliver('carol');
      expect(running.of('fault')).toEqual([]);
    });

    it('tells the service of at most 2 % of 600 logouts twice that come while the table is locked', async () => {
      const [running] = await startTwo();
      const { app } = running;
      const unlock = await server.lock(place.tables[0] ?? '');
      const uids = Array.from({ length: 600 }, (_, n) => `user-${n}`);
      for (let n = 0; n < uids.length; n += 20)
        await Promise.all(uids.slice(n, n + 20).map((uid) => app.get(DebateSpaceService).logoutUser(uid)));
      const recovered = firstEvent(app, 'storage-recovered');
      await unlock();
      await recovered;
      await running.logOut('afterwards');
      await scene.service.received.waitFor('logout', { count: 601, timeoutMs: 60_000 });
      await scene.stop();
      const { logouts } = scene.service.received;
      expect(new Set(logouts).size).toBe(601);
      expect(logouts.length - 601).toBeLessThanOrEqual(12);
    });

    it.each(['all of its tables', 'the table of the jobs'])(
      'reports the drop of %s once, and continues to deliver',
      async (which) => {
        const [running] = await startTwo();
        await dropTables(which === 'all of its tables' ? place.tables : place.tables.slice(0, 1));
        for (const uid of ['alice', 'bob']) {
          await running.logOutAndDeliver(uid);
          await running.look();
        }
        expect(running.of('storage-degraded')).toEqual([
          { type: 'storage-degraded', cause: expect.stringContaining('a table is missing') },
        ]);
        expect(running.of('storage-recovered')).toEqual([]);
        expect(linesWith('does not take logouts')).toHaveLength(1);
      },
    );

    it.each(['empties its tables', 'drops them, and a new process makes them again'])(
      'reports it once in every process when somebody %s, and delivers as before',
      async (how) => {
        const both = await startTwo();
        const emptied = both.map(({ app }) => firstEvent(app, 'storage-emptied'));
        if (how === 'empties its tables')
          for (const table of place.tables) await server.run(`TRUNCATE TABLE ${table}`);
        else {
          await dropTables();
          await Running.start(place.engine);
        }
        await Promise.all(emptied);
        for (const running of both) {
          await running.logOutAndDeliver(how);
          await running.look();
          expect(await running.problems()).toEqual([expect.stringMatching(/^the storage was emptied; see:/)]);
          expect(running.of('storage-emptied')).toHaveLength(1);
        }
        const line = expect.stringMatching(
          /^the storage was emptied: .* waited in the .*database .* are lost; hint: /,
        );
        expect(linesWith('the storage was emptied')).toEqual([line, line]);
        expect(await (await Running.start(place.engine)).problems()).toEqual([]);
      },
    );
  });
}
