import { afterAll, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { ErasureRoom } from '#support/service/erasure-room.js';
import { tableStorages, type TableStorage } from '#support/storages/table-storages.js';
import { Containment, faultsTo } from '../async/containment.js';
import { LiveSessionTable } from '../live-sessions/live-session-table.js';
import { sweepExpired } from '../live-sessions/session-sweep.js';
import { LogoutRepository } from '../logout/logout-repository.js';
import { StorageWatch } from '../storage/storage-watch.js';
import type { Storage } from '../storage/storage.js';
import type { PendingErasure } from './erasure.js';

/*
 * What somebody can do who may read or write the tables. SECURITY.md#what-an-attacker-can-do has it as a table, and each of its lines is
 * played here, on a scene with rows of every kind.
 */

const HOUR_MS = 3_600_000;
const YEAR_5000 = 95_617_584_000_000;
const TABLES = ['jobs', 'references', 'sessions', 'rate', 'facts'] as const;

/*
 * What a writer without a key does. `reported`: an event or the health says so. `no effect`: there is nothing to report.
 * `unseen`: it takes a row away, and nobody can know. Reference names stand for themselves; `JOB(x)` and `REF(x)` are the id
 * of a job or a reference, `MARK(x)`, `SEALED(x)` and `DETAILS(x)` such columns, and RESTORE(x) inserts a job as it once was.
 */
const CHANGES = `
reported  | completes a list that was never read to its end | UPDATE references SET complete = 1 WHERE name = 'refused'
reported  | completes it, and says that all others are done | UPDATE references SET complete = 1, total = 1 WHERE name = 'refused'
reported  | completes it under the mark of a complete list | UPDATE references SET complete = 1, mark = MARK(list) WHERE name = 'refused'
reported  | moves the users of such a list to a queue that runs | UPDATE jobs SET queue = 'APP/erasures' WHERE id = JOB(bob)
reported  | moves them to another list | UPDATE jobs SET queue = REF(list), reference = REF(list) WHERE id = JOB(bob)
reported  | gives them the ids of another list | UPDATE jobs SET id = REPLACE(id, REF(refused), REF(list)), queue = REF(list), reference = REF(list) WHERE id = JOB(bob)
reported  | takes a cancellation back, and restores the user | UPDATE references SET canceled = 0, finished_at = NULL WHERE name = 'canceled'; RESTORE(dan)
reported  | takes it back under the mark of another list | UPDATE references SET canceled = 0, finished_at = NULL, mark = MARK(list) WHERE name = 'canceled'; RESTORE(dan)
no effect | restores the user of a canceled reference | RESTORE(dan)
reported  | restores the user as uncertain, so that it is sent again | RESTORE(dan); UPDATE references SET finished_at = NULL WHERE name = 'canceled'; UPDATE jobs SET uncertain = 1, uncertain_mark = 'x' WHERE id = JOB(dan)
reported  | resumes a paused reference | UPDATE references SET paused = 0 WHERE name = 'paused'
reported  | pauses a reference | UPDATE references SET paused = 1 WHERE name = 'requested'
reported  | cancels a reference | UPDATE references SET canceled = 1 WHERE name = 'requested'
reported  | cancels a list | UPDATE references SET canceled = 1 WHERE name = 'list'
reported  | makes a list incomplete | UPDATE references SET complete = 0 WHERE name = 'list'
reported  | makes a deletion of an anonymization | UPDATE references SET mode = 'delete' WHERE name = 'mild'
reported  | moves an anonymization to a deletion | UPDATE jobs SET reference = REF(requested) WHERE id = JOB(gina)
reported  | moves it with an id that fits | UPDATE jobs SET reference = REF(requested), id = REPLACE(id, REF(mild), REF(requested)) WHERE id = JOB(gina)
reported  | changes who requested an erasure | UPDATE references SET requested_by = 'the chief' WHERE name = 'requested'
reported  | removes who requested it | UPDATE references SET requested_by = NULL WHERE name = 'requested'
reported  | changes when it was requested | UPDATE references SET requested_at = ${YEAR_5000} WHERE name = 'requested'
reported  | makes a list of a single user | UPDATE references SET is_list = 1 WHERE name = 'requested'
reported  | renames a reference | UPDATE references SET name = 'another' WHERE name = 'requested'
reported  | swaps the names of two references | UPDATE references SET name = CASE name WHEN 'mild' THEN 'requested' ELSE 'mild' END WHERE name IN ('mild', 'requested')
reported  | copies the mark of another reference | UPDATE references SET mark = MARK(mild) WHERE name = 'requested'
reported  | empties the mark | UPDATE references SET mark = '' WHERE name = 'requested'
no effect | makes itself the reader of a list | UPDATE references SET reader = 'me'
no effect | says that all references are running | UPDATE references SET started = 1
no effect | says that all were resumed in the year 5000 | UPDATE references SET resumed_at = ${YEAR_5000}
no effect | says that all alarms were given | UPDATE references SET overdue_ms = ${YEAR_5000}
unseen    | says that a reference is finished | UPDATE references SET finished_at = 1, users_erased = total WHERE name = 'list'
reported  | deletes the references | DELETE FROM references WHERE name = 'requested'
reported  | deletes the users of a reference | DELETE FROM jobs WHERE id = JOB(alice)
reported  | gives a user the uid of another | UPDATE jobs SET sealed = SEALED(bob) WHERE id = JOB(alice)
reported  | gives a user the hash of another | UPDATE jobs SET subject = 'x' WHERE id = JOB(alice)
reported  | makes an erasure of a logout | UPDATE jobs SET kind = 'erasure', queue = 'APP/erasures', reference = REF(requested) WHERE id = JOB(henry)
reported  | makes an erasure of a logout, with an id that fits | DELETE FROM jobs WHERE id = JOB(alice); UPDATE jobs SET kind = 'erasure', queue = 'APP/erasures', id = JOB(alice), reference = REF(requested) WHERE id = JOB(henry)
reported  | makes a logout of an erasure | UPDATE jobs SET kind = 'logout', queue = 'APP/logouts' WHERE id = JOB(eve)
reported  | copies an erasure of another application | COPY(olga)
reported  | copies a logout of another application | COPY(otto)
reported  | says that a request was sent | UPDATE jobs SET uncertain = 1, uncertain_mark = 'x' WHERE id = JOB(alice)
reported  | copies that a request was sent from another user | UPDATE jobs SET uncertain = 1, uncertain_mark = UNCERTAIN(ulla) WHERE id = JOB(alice)
no effect | says that no request was sent | UPDATE jobs SET uncertain = 0, uncertain_mark = NULL WHERE id = JOB(ulla)
reported  | parks an erasure | UPDATE jobs SET state = 'parked', due_at = NULL, ended_at = 1 WHERE id = JOB(alice)
reported  | makes an erasure due in the year 5000 | UPDATE jobs SET due_at = ${YEAR_5000} WHERE id = JOB(alice)
no effect | makes everything due now, and takes each lease | UPDATE jobs SET due_at = 1, token = NULL WHERE due_at IS NOT NULL
no effect | says that everything has failed a thousand times | UPDATE jobs SET attempts = 1000, failures = 1000, rejections = 1000, since = 1, cause = 'x'
reported  | writes a receipt | UPDATE jobs SET state = 'done', outcome = 'erased', due_at = NULL, ended_at = 1, sealed = '' WHERE id = JOB(alice)
reported  | writes a receipt with the text of another | UPDATE jobs SET state = 'done', outcome = 'erased', due_at = NULL, ended_at = 1, sealed = '', details = DETAILS(frank) WHERE id = JOB(alice)
reported  | changes what a receipt says | UPDATE jobs SET details = REPLACE(details, 'vetoed', 'erased') WHERE id = JOB(hugo)
reported  | changes the date of a receipt | UPDATE jobs SET details = REPLACE(details, '"doneAt":1', '"doneAt":2') WHERE id = JOB(frank)
reported  | empties a receipt | UPDATE jobs SET details = '' WHERE id = JOB(frank)
reported  | gives a receipt to another user | UPDATE jobs SET subject = 'x' WHERE id = JOB(frank)
reported  | copies a receipt to another reference | UPDATE jobs SET id = REPLACE(id, REF(done), REF(held)) WHERE id = JOB(frank)
no effect | changes outcome, date and attempts beside a receipt | UPDATE jobs SET outcome = 'erased', ended_at = 1, attempts = 9 WHERE state = 'done'
reported  | sends a logout for another user | UPDATE jobs SET sealed = SEALED(alice) WHERE id = JOB(henry)
reported  | changes the reason of a logout | UPDATE jobs SET details = 'requested' WHERE id = JOB(henry)
reported  | makes a logout due in the year 5000 | UPDATE jobs SET due_at = ${YEAR_5000} WHERE id = JOB(henry)
reported  | sends a delivered logout again without its uid | UPDATE jobs SET state = 'waiting', due_at = 1, outcome = NULL WHERE id = JOB(ida)
unseen    | deletes a logout | DELETE FROM jobs WHERE id = JOB(henry)
unseen    | says that a logout was delivered | UPDATE jobs SET state = 'done', outcome = 'delivered', due_at = NULL, ended_at = 1, sealed = '' WHERE id = JOB(henry)
no effect | makes the live sessions due | UPDATE sessions SET due_at = 1, expires_at = 1, token = NULL WHERE due_at IS NOT NULL
reported  | copies a live session of another application | COPY(oscar)
reported  | gives a live session the text of another | UPDATE sessions SET sealed = SEALED(mia), due_at = 1 WHERE id = SESSION(jack)
reported  | gives a live session to another user | UPDATE sessions SET subject = 'x', due_at = 1
unseen    | deletes the live sessions | DELETE FROM sessions
no effect | pauses all logouts and erasures until the year 5000 | INSERT INTO facts (id, value) VALUES ('APP/logout-paused-until', ${YEAR_5000}), ('APP/erasure-paused-until', ${YEAR_5000})
reported  | changes the birth of the storage | UPDATE facts SET value = value + 1 WHERE id = 'APP/birth'
reported  | deletes the birth of the storage | DELETE FROM facts WHERE id = 'APP/birth'
no effect | takes all slots of the rate limit until the year 5000 | UPDATE rate SET taken_at = ${YEAR_5000}
no effect | deletes the slots of the rate limit | DELETE FROM rate
`
  .trim()
  .split('\n')
  .map((line) => line.split(' | ') as [sign: string, what: string, sql: string])
  .map(([sign, ...rest]) => [sign.trim(), ...rest] as const);

type Row = Readonly<Record<string, unknown>>;
type Run = NonNullable<TableStorage['run']>;

/** The tables of two applications with rows of every kind, to be restored before each change. */
interface Place {
  readonly storage: Storage;
  readonly other: Storage;
  readonly run: Run;
  /** Together, which takes SQLite a tenth of the time. */
  readonly runAll: (texts: readonly string[]) => Promise<void>;
  /** Jobs and live sessions, by their users, as they were when all were there. */
  readonly rows: Map<string, { readonly table: 'jobs' | 'sessions'; readonly row: Row }>;
  readonly all: Map<(typeof TABLES)[number], readonly Row[]>;
}

/** One application with rows of every kind, another one on the same tables, and somebody who may write to them. */
class Scene {
  readonly loggedOut: string[] = [];
  readonly heard: PendingErasure[] = [];
  readonly room: ErasureRoom;
  readonly rival: ErasureRoom;
  readonly storage: Storage;
  readonly run: Run;
  readonly rows: Place['rows'];
  readonly logouts: LogoutRepository;
  readonly sessions: LiveSessionTable;
  readonly watch: StorageWatch;

  constructor(
    private readonly place: Place,
    keys?: readonly string[],
  ) {
    const { storage, other, run, rows } = place;
    const room = new ErasureRoom(storage, keys);
    this.room = room;
    this.rival = new ErasureRoom(other, keys, 'other');
    [this.storage, this.run, this.rows] = [storage, run, rows];
    const containment = new Containment(faultsTo((event) => void this.room.events.push(event)));
    this.logouts = new LogoutRepository(storage, room.keyring, HOUR_MS);
    this.sessions = new LiveSessionTable(storage, room.keyring, this.find, containment);
    this.watch = new StorageWatch(
      { storage, place: undefined, warnings: [] },
      (event) => void room.events.push(event),
    );
    room.beforeErase = (erasure) => {
      this.heard.push(erasure);
      return erasure.uid === 'hugo' ? { veto: 'legal hold' } : undefined;
    };
  }

  /** The host's store has the sessions of jack and mia. */
  readonly find = (sid: string) => {
    const session = { cookie: { expires: new Date(Date.now() + HOUR_MS) } };
    return Promise.resolve(['jack', 'mia'].includes(sid) ? [{ uid: sid, session }] : []);
  };

  /** Makes the rows. */
  async set(): Promise<void> {
    const { room, rival, storage } = this;
    await room.request('done', ['frank']);
    await room.request('held', ['hugo']);
    await room.work();
    await room.request('doubt', ['ulla']);
    const [claim] = (await storage.claim('erasure', 1)).claims;
    if (!claim) throw new Error('nothing is due');
    await room.repository.markSending(claim);
    await storage.giveBack([claim]);
    await room.request('requested', ['alice']);
    await room.request('mild', ['gina'], 'anonymize');
    await room.requestList('list', ['lena']);
    const list = { reference: 'refused', mode: 'delete', requestedBy: 'for refused' } as const;
    const part = { reader: 'reader', isFirst: true, isLast: false };
    await room.repository.add(storage, list, ['bob', 'carol'], part);
    await room.request('paused', ['eve']);
    await room.erasures.pause('paused');
    await room.requestList('canceled', ['dan']);
    await rival.request('requested', ['olga']);
    for (const [logouts, ...uids] of [
      [this.logouts, 'ida', 'henry'],
      [new LogoutRepository(rival.storage, rival.keyring, HOUR_MS), 'otto'],
    ] as const)
      for (const uid of uids) {
        const id = `${String(Date.now()).padStart(15, '0')}-${uid}`;
        await logouts.add({ id, uid, reason: 'destroyed', endedAt: Date.now() });
        const { claims } = uid === 'ida' ? await storage.claim('logout', 1) : { claims: [] };
        for (const delivered of claims) await storage.finishLogout(delivered, 1);
      }
    const ofRival = new LiveSessionTable(
      rival.storage,
      rival.keyring,
      this.find,
      new Containment(() => undefined),
    );
    for (const [table, uid] of [
      [this.sessions, 'jack'],
      [this.sessions, 'mia'],
      [ofRival, 'oscar'],
    ] as const) {
      table.register(uid, uid, Date.now() + HOUR_MS);
      await table.idle();
    }
    await storage.takeSlot(2, 1_000);
    await this.#remember();
    await room.erasures.cancel('canceled');
    for (const table of TABLES)
      this.place.all.set(table, await this.run(`SELECT * FROM debate_space_${table}`));
  }

  /** Makes the rows again as they were. */
  async restore(): Promise<void> {
    const { all, runAll } = this.place;
    await runAll(
      [...all].flatMap(([table, rows]) => [`DELETE FROM debate_space_${table}`, insertion(table, rows)]),
    );
    await this.watch.look();
  }

  async #remember(): Promise<void> {
    const uids = 'alice bob carol dan eve frank gina hugo lena ulla olga henry ida otto jack mia oscar'.split(
      ' ',
    );
    for (const table of ['jobs', 'sessions'] as const)
      for (const row of await this.run(`SELECT * FROM debate_space_${table}`)) {
        const isOf = (uid: string): boolean =>
          [this.room, this.rival].some(({ keyring }) =>
            ['erasure', 'logout', 'session user'].some((kind) => keyring.hash(kind, uid) === row.subject),
          );
        const uid = uids.find(isOf);
        if (uid !== undefined) this.rows.set(uid, { table, row });
      }
    expect([...this.rows.keys()].sort()).toEqual(uids.sort());
  }

  /** All tables as text. */
  async #tables(): Promise<string> {
    const all: (readonly Row[])[] = [];
    for (const table of TABLES) all.push(await this.run(`SELECT * FROM debate_space_${table}`));
    return inspect(all, { depth: null, maxArrayLength: null, maxStringLength: null });
  }

  /** Changes the tables past the storage. A statement that changes nothing is a mistake of the test. */
  async change(sql: string): Promise<void> {
    for (const statement of sql.split('; ')) {
      const before = await this.#tables();
      await this.#execute(statement);
      if ((await this.#tables()) === before) throw new Error(`no row is changed by: ${statement}`);
    }
  }

  async #execute(statement: string): Promise<void> {
    const [, what, name = ''] = /^\s*(RESTORE|COPY)\((\w+)\)$/.exec(statement) ?? [];
    const known = what === undefined ? undefined : this.rows.get(name);
    if (known) return this.insert(known.table, known.row, what === 'COPY');
    const references = await this.run(`SELECT id, name, mark FROM debate_space_references WHERE app = 'app'`);
    const ofUser = (uid: string, column: string): unknown => this.rows.get(uid)?.row[column];
    const ofReference = (of: string, column: string): unknown =>
      references.find((reference) => reference.name === of)?.[column];
    const values: Readonly<Record<string, (of: string) => unknown>> = {
      JOB: (uid) => ofUser(uid, 'id'),
      SESSION: (uid) => ofUser(uid, 'id'),
      SEALED: (uid) => ofUser(uid, 'sealed'),
      DETAILS: (uid) => ofUser(uid, 'details'),
      UNCERTAIN: (uid) => ofUser(uid, 'uncertain_mark'),
      REF: (of) => ofReference(of, 'id'),
      MARK: (of) => ofReference(of, 'mark'),
    };
    const valueOf = (all: string, column: string, of: string): string => {
      const value = values[column]?.(of);
      if (value === undefined || value === null) throw new Error(`there is no ${all}`);
      return literal(value);
    };
    const text = statement
      .replaceAll(/(JOB|SESSION|SEALED|DETAILS|UNCERTAIN|REF|MARK)\((\w+)\)/g, valueOf)
      .replace(/(UPDATE|FROM|INTO) (\w+)/, '$1 debate_space_$2')
      .replaceAll('APP/', 'app/');
    await this.run(text);
  }

  /** @param isCopy from the rows of the other application to those of this one */
  async insert(table: string, row: Row, isCopy: boolean): Promise<void> {
    const moved = (value: unknown): unknown =>
      isCopy && typeof value === 'string' ? value.replace(/^other(?=$|\/)/, 'app') : value;
    const columns = Object.entries(row).map(([column, value]) => [column, moved(value)] as const);
    await this.run(insertion(table, [{ ...Object.fromEntries(columns), due_at: 1 }]));
  }

  /** All that is due is done, as the app does it. */
  async work(): Promise<void> {
    const { room, storage, logouts, sessions, find } = this;
    const recorder = {
      recordExpired: (_session: unknown, uid: string) => {
        this.loggedOut.push(uid);
        return Promise.resolve();
      },
    };
    const { signal } = new AbortController();
    const emit = (event: (typeof room.events)[number]): void => void room.events.push(event);
    const containment = new Containment(faultsTo(emit));
    for (let [round, worked] = [0, 1]; round < 3 && worked > 0; round += 1) {
      worked = await room.work();
      const { claims } = await storage.claim('logout', 100);
      worked += claims.length;
      for (const claim of claims) {
        const entry = logouts.entryOf(claim);
        if (!entry) await storage.park(claim, 'a hint', { ...claim, cause: 'unreadable' });
        else await storage.finishLogout(claim, 1);
        if (entry) this.loggedOut.push(entry.uid);
      }
      await sweepExpired({ storage, sessions, recorder, containment, emit, find, sweepMs: 1_000, signal });
    }
    await room.repository.verifySome();
    await this.watch.look();
  }

  /** The receipts that are believed, as the hosts see them. */
  async receipts(): Promise<readonly string[]> {
    const { repository, keyring } = this.room;
    const believed = new Set<string>();
    const uids = [...this.rows.keys()];
    const all = await Promise.all([
      listed(repository.list()).then((found) =>
        Promise.all(found.map(({ reference }) => this.room.receipts(reference))),
      ),
      Promise.all(uids.map((uid) => listed(repository.receiptsOf(uid)))),
    ]);
    for (const { subject, outcome, reference, requestedBy, doneAt } of all.flat(2)) {
      if (outcome === 'unverified') continue;
      const uid = uids.find((each) => keyring.hash('erasure', each) === subject) ?? 'somebody';
      const isNow = Math.abs(Date.now() - doneAt.getTime()) < HOUR_MS;
      believed.add([uid, outcome, reference, requestedBy, isNow].join(' '));
    }
    return [...believed].sort();
  }

  /** Whether an event or the health says that something is wrong, now or when a logout or an erasure is overdue. */
  async isReported(): Promise<boolean> {
    const { room, storage } = this;
    const types = ['record-unverified', 'erasure-parked', 'storage-emptied'];
    if (room.events.some(({ type }) => types.includes(type)) || room.repository.unverified > 0) return true;
    for (const kind of ['logout', 'erasure'] as const)
      if ((await storage.counts(kind)).parked > 0) return true;
    if ((await storage.counts('logout')).waiting > 0) return true;
    for await (const { reference, finishedAt } of room.repository.list())
      if (!finishedAt && !['refused', 'paused'].includes(reference)) return true;
    return false;
  }

  /** All that was requested is done, and nothing is reported. */
  async expectAllDone(): Promise<void> {
    const { room, loggedOut, storage } = this;
    expect(room.sent.sort()).toEqual(['anonymize gina', 'delete alice', 'delete lena', 'delete ulla']);
    expect(loggedOut).toEqual(['henry']);
    expect(await this.receipts()).toHaveLength(6);
    expect(await this.isReported()).toBe(false);
    const nextMs = await storage.takeSlot(2, 1);
    if (nextMs > 0) await sleep(nextMs + 1);
    expect(await storage.takeSlot(2, 1)).toBeLessThanOrEqual(1);
  }

  /** Nobody is erased or logged out, and no receipt is believed, but those of the scene. */
  async expectNothingForged(): Promise<void> {
    const { room, heard, loggedOut } = this;
    const requested = new Map([
      ...['requested alice', 'list lena', 'doubt ulla'].map((text) => [text, 'delete'] as const),
      ['mild gina', 'anonymize'],
    ]);
    for (const { uid, reference, mode, requestedBy } of heard) {
      expect([uid, mode]).toEqual([uid, requested.get(`${reference} ${uid}`)]);
      expect(requestedBy).toBe(reference === 'list' ? undefined : `for ${reference}`);
    }
    const erased = heard.map(({ uid, mode }) => `${mode} ${uid}`);
    for (const sent of room.sent) expect(erased).toContain(sent);
    for (const uid of loggedOut) expect(uid).toBe('henry');
    const ofScene = ['frank erased done for done true', 'hugo vetoed held for held true'];
    const written = heard.map(({ uid, reference, requestedBy }) =>
      [uid, 'erased', reference, requestedBy, true].join(' '),
    );
    for (const receipt of await this.receipts()) expect([...ofScene, ...written]).toContain(receipt);
  }
}

async function listed<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

function insertion(table: string, rows: readonly Row[]): string {
  const columns = Object.keys(rows[0] ?? {}).filter((column) => column !== 'due_queue'); // MySQL makes it
  const values = rows.map((row) => `(${columns.map((column) => literal(row[column])).join(', ')})`);
  return `INSERT INTO debate_space_${table} (${columns.join(', ')}) VALUES ${values.join(', ')}`;
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : JSON.stringify(value);
}

for (const kept of tableStorages.filter(({ name, isShared }) => isShared && !name.includes('ORM')))
  kept.describe(`with the tables of ${kept.name}`, () => {
    let making: Promise<Place> | undefined;
    afterAll(async () => {
      const { storage, other } = (await making) ?? {};
      await Promise.all([storage?.close(), other?.close()]);
      await kept.stop();
    });

    async function make(): Promise<Place> {
      const engine = await kept.engine();
      const run: Run = (text) => kept.run?.(text) ?? Promise.resolve([]);
      const [storage, other] = [(await engine.open('app')).storage, (await engine.open('other')).storage];
      const runAll = async (texts: readonly string[]): Promise<void> => {
        if (kept.name === 'SQLite') await run(`BEGIN; ${texts.join('; ')}; COMMIT`);
        else for (const text of texts) await run(text);
      };
      const place: Place = { storage, other, run, runAll, rows: new Map(), all: new Map() };
      await new Scene(place).set();
      return place;
    }

    async function scene(keys?: readonly string[]): Promise<Scene> {
      const found = new Scene(await (making ??= make()), keys);
      await found.restore();
      return found;
    }

    describe('a reader', () => {
      it('finds no uid and no session id, and no hash that two applications or two tables share', async () => {
        const { run, rows } = await scene();
        const all: Row[] = [];
        for (const table of TABLES) all.push(...(await run(`SELECT * FROM debate_space_${table}`)));
        const text = JSON.stringify(all);
        for (const uid of rows.keys()) expect(text).not.toMatch(new RegExp(`(?<!-)\\b${uid}\\b`)); // in the test's own ids of logouts
        const subjects = all.flatMap(({ subject }) => (subject === undefined ? [] : [subject]));
        expect(new Set(subjects).size).toBe(subjects.length);
      });
    });

    describe('a writer', () => {
      it('with a key can request an erasure in the name of somebody else', async () => {
        const forged = await scene();
        const { keyring, repository } = forged.room;
        const found = await forged.storage.reference('requested');
        if (!found) throw new Error('no such reference');
        const { key, reference, mode, requestedAt } = found;
        const mark = keyring.mark(
          'reference',
          key,
          reference,
          mode,
          'the chief',
          false,
          requestedAt,
          true,
          false,
          false,
        );
        await forged.change(
          `UPDATE references SET requested_by = 'the chief', mark = '${mark}' WHERE name = 'requested'`,
        );
        await forged.work();
        expect(forged.heard).toContainEqual({
          uid: 'alice',
          mode: 'delete',
          reference,
          requestedBy: 'the chief',
        });
        expect(repository.unverified).toBe(0);
      });

      it('of a row that he has read before can have it executed once more', async () => {
        const replayed = await scene();
        await replayed.work();
        await replayed.change(`DELETE FROM jobs WHERE id = JOB(henry); RESTORE(henry)`);
        await replayed.work();
        expect(replayed.loggedOut).toEqual(['henry', 'henry']);
      });
    });

    describe('the rows of a version without marks', () => {
      const subject = 'C2BRg072BmA0MHmGV5iNCf';
      const jobs = `INSERT INTO jobs (id, app, kind, queue, reference, subject, state, details, attempts, failures, rejections,
        uncertain, due_at, since, sealed) VALUES`;
      const former = [
        `${jobs} ('APP/000000000000001-former', 'app', 'logout', 'APP/logout', NULL, '${subject}', 'waiting', 'destroyed', 0, 0, 0,
          0, 1, 1, 'JjWK2qQrIS6TS58BsAFAMRkEXqhSccw7IxJphKbzlAnQtQ')`,
        `${jobs} ('APP/KjZDBjXnUFR58Lp2xJHx_i.${subject}', 'app', 'erasure', 'APP/erasure', 'APP/KjZDBjXnUFR58Lp2xJHx_i', '${subject}',
          'waiting', '', 0, 0, 0, 0, 1, 1, 'uh4R-FvH5zD-GwxLE1rquTzvHPHBEC55ZfTx_fuoTTD0Xg')`,
        `INSERT INTO references (id, app, name, mode, is_list, complete, paused, canceled, started, requested_at, overdue_ms, total,
          users_erased, users_not_found, users_vetoed, users_canceled) VALUES ('APP/KjZDBjXnUFR58Lp2xJHx_i', 'app', 'former',
          'delete', 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0)`,
      ].join('; ');

      async function adopted(change: string): Promise<Scene> {
        const old = await scene();
        await old.change(`${former}; ${change}`);
        while (await old.storage.prune({ historyMs: HOUR_MS, receiptsMs: HOUR_MS }));
        const waiting = await old.storage.listLogouts('waiting', 10);
        expect(waiting.map((job) => old.logouts.entryOf(job)?.uid)).toContain('former');
        await old.work();
        return old;
      }

      it('are worked on, also while a process of that version adds some', async () => {
        const { room, logouts } = await adopted('DELETE FROM rate');
        expect(room.sent).toContain('delete former');
        expect(await logouts.history('former')).toMatchObject([{ state: 'superseded' }]);
        expect(await room.receipts('former')).toMatchObject([{ outcome: 'erased', mode: 'delete' }]);
        expect(room.types()).not.toContain('record-unverified');
      });

      it('are no way around the marks', async () => {
        const mode = await adopted(`UPDATE references SET mode = 'anonymize' WHERE name = 'former'`);
        expect(mode.room.sent).not.toContain('anonymize former');
        const unmarked = await adopted(
          `UPDATE references SET mark = NULL, requested_by = 'me' WHERE name = 'requested'`,
        );
        expect(unmarked.heard.map(({ uid }) => uid)).not.toContain('alice');
        expect(await unmarked.isReported()).toBe(true);
      });
    });

    describe('a writer without a key', () => {
      it('has done nothing: then all that was requested is done, and nothing is reported', async () => {
        const untouched = await scene();
        await untouched.work();
        await untouched.expectNothingForged();
        await untouched.expectAllDone();
      });

      it.each(CHANGES)('%s: %s', async (sign, _what, sql) => {
        const changed = await scene();
        await changed.change(sql);
        await changed.work();
        await changed.expectNothingForged();
        expect(await changed.isReported()).toBe(sign === 'reported');
        if (sign === 'no effect') await changed.expectAllDone();
      });
    });
  });
