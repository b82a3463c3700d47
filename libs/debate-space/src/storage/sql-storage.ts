import { randomInt, randomUUID } from 'node:crypto';
import { Batches } from './batches.js';
import type { Columns, Database, Query, Row } from './database.js';
import type { Table } from './schema.js';
import {
  COUNTERS,
  END,
  ENDED_USERS,
  idOf,
  jobOf,
  numberOr,
  referenceOf,
  textOr,
  UNSTARTED,
  UNTRIED,
} from './sql-rows.js';
import { conflictOf, endedAtOf, referenceKey } from './rules.js';
import {
  ENDED_SESSION_MS,
  LEASE_MS,
  MAX_COUNTED,
  MAX_PAUSE_MS,
  type Added,
  type CanceledUsers,
  type Claim,
  type Claims,
  type Counts,
  type DueSession,
  type EndedUser,
  type Erasure,
  type ErasureOutcome,
  type ErasureRequests,
  type HostTransaction,
  type Job,
  type JobKind,
  type LiveSession,
  type LogoutOutcome,
  type NewErasure,
  type NewLogout,
  type NewReference,
  type Progress,
  type Reference,
  type ReferenceStatus,
  type Storage,
} from './storage.js';

export interface SqlStorageOptions {
  /** Of the names of the tables: a schema with a dot, or the beginning of each name. */
  readonly prefix?: string;
  /** The database in a transaction of the host's; absent where there is none. */
  readonly within?: (transaction: HostTransaction) => Database;
}

/** How many rows one call cancels or retries at most. */
const STEP = 500;
/** How many rows one call prunes at most: a statement takes less than 50 ms. */
const PRUNED = 50;
/** How many references one call prunes or reports at most. */
const REFERENCES = 100;
/** How many rows are counted at most. */
const MANY = MAX_COUNTED + 1;
/** Among how many waiting logouts, in the order in which they are due, the oldest is searched: no index has them by age. */
const MAX_SORTED = 1_000;
const WAITING = 'due_at IS NOT NULL';
const PARKED = `state = 'parked' AND ended_at IS NOT NULL`;
/** How many jobs, the latest due first, are searched for one that failed and waits. */
const LATEST_DUE = 20;
/** In `is_list`. A process that knows version 1 of the tables has lists with 1, and claims no others: it cannot read new seals. */
const LIST = 2;
/** Lists of which users are erased, as `r`. */
const RUNNING_LISTS = `r.app = ? AND r.is_list = ${LIST} AND r.finished_at IS NULL AND r.paused = 0
  AND (r.complete = 1 OR r.canceled = 1)`;

type Values = readonly unknown[];
type LogoutEnd = readonly [id: string, attempts: number];

/** The operations in SQL, for every engine that has it. Each is one statement, or one short transaction. */
export class SqlStorage implements Storage {
  readonly #database: Database;
  /** Its clock. */
  readonly #now: string;
  readonly #dueQueue: string;
  readonly #query: Query;
  readonly #application: string;
  readonly #jobs: string;
  readonly #references: string;
  readonly #sessions: string;
  readonly #rate: string;
  readonly #facts: string;
  /** The erasures of single users wait together, those of each list on their own. */
  readonly #singles: string;
  readonly #adds = new Batches<NewLogout>((logouts) => this.#insertLogouts(this.#query, logouts));
  readonly #finishes = new Batches<LogoutEnd>((ends) => this.#finishLogouts(ends));
  readonly within?: (transaction: HostTransaction) => ErasureRequests;
  #slots = 0;

  constructor(database: Database, application: string, options: SqlStorageOptions = {}) {
    const { prefix = '', within } = options;
    const table = (name: Table): string => `${prefix}${name}`;
    this.#database = database;
    this.#now = database.now;
    this.#dueQueue = database.dueQueue;
    this.#query = database.query;
    this.#application = application;
    this.#jobs = table('debate_space_jobs');
    this.#references = table('debate_space_references');
    this.#sessions = table('debate_space_sessions');
    this.#rate = table('debate_space_rate');
    this.#facts = table('debate_space_facts');
    this.#singles = this.#id('erasures');
    if (within) this.within = (transaction) => new SqlStorage(within(transaction), application, { prefix });
  }

  /** Marks the storage, if nobody has. */
  async open(): Promise<void> {
    await this.#addFact(this.#id('birth'), randomInt(2 ** 47));
  }

  // ---- logouts

  async addLogouts(logouts: readonly NewLogout[], late?: AbortSignal): Promise<void> {
    await Promise.all(logouts.map((logout) => this.#adds.add(logout, late)));
  }

  async #insertLogouts(query: Query, logouts: readonly NewLogout[]): Promise<void> {
    const place = { app: this.#application, queue: this.#id('logouts'), kind: 'logout' };
    const rows = logouts.map(({ id, subject, details, sealed }) => ({
      id: this.#id(id),
      ...place,
      subject,
      details,
      sealed,
    }));
    await this.#insertNew(query, this.#jobs, rows, { due_at: this.#now, since: this.#now, ...UNTRIED });
  }

  finishLogout({ id }: Claim, attempts: number): Promise<void> {
    return this.#finishes.add([id, attempts]);
  }

  async #finishLogouts(ends: readonly LogoutEnd[]): Promise<void> {
    for (const attempts of new Set(ends.map((end) => end[1]))) {
      const ids = ends.filter((end) => end[1] === attempts).map(([id]) => this.#id(id));
      const set = `${END}, outcome = 'delivered', attempts = ?, ended_at = ${this.#now}`;
      const text = `UPDATE ${this.#jobs} SET ${set} WHERE id IN (${marks(ids)}) AND state <> 'done'`;
      await this.#query(text, [attempts, ...ids]);
    }
  }

  supersedeLogouts(subjects: readonly string[]): Promise<number> {
    const [where, values] = this.#jobsOf(subjects, 'logout');
    return this.#endLogouts('superseded', `${where} AND state <> 'done'`, values);
  }

  async discardLogout(id: string): Promise<boolean> {
    const where = `id = ? AND kind = 'logout' AND state = 'parked'`;
    return (await this.#endLogouts('discarded', where, [this.#id(id)])) === 1;
  }

  #endLogouts(outcome: LogoutOutcome, where: string, values: Values): Promise<number> {
    const set = `${END}, outcome = '${outcome}', ended_at = ${this.#now}`;
    return this.#count(`UPDATE ${this.#jobs} SET ${set} WHERE ${where}`, values);
  }

  async retryLogout(id: string): Promise<boolean> {
    const set = `${this.#retried}, attempts = 0, rejections = 0`;
    const text = `UPDATE ${this.#jobs} SET ${set} WHERE id = ? AND kind = 'logout' AND state = 'parked'`;
    return (await this.#count(text, [this.#id(id)])) === 1;
  }

  /** The assignments that make a parked job due again. */
  get #retried(): string {
    return `state = 'waiting', due_at = ${this.#now}, since = ${this.#now}, failures = 0, cause = NULL, hint = NULL, ended_at = NULL`;
  }

  async listLogouts(state: 'waiting' | 'parked', limit: number, skip = 0): Promise<readonly Job[]> {
    const [rows, order] =
      state === 'waiting'
        ? [`${this.#dueQueue} = ? AND ${WAITING}`, 'due_at']
        : [`queue = ? AND ${PARKED}`, 'ended_at'];
    const text = `SELECT * FROM ${this.#jobs} WHERE ${rows} ORDER BY ${order}, id LIMIT ${limit} OFFSET ${skip}`;
    return (await this.#rows(text, [this.#id('logouts')])).map(jobOf);
  }

  async logoutsOf(subjects: readonly string[]): Promise<readonly Job[]> {
    const [where, values] = this.#jobsOf(subjects, 'logout');
    return (
      await this.#rows(`SELECT * FROM ${this.#jobs} WHERE ${where} ORDER BY id LIMIT 1000`, values)
    ).map(jobOf);
  }

  #jobsOf(subjects: readonly string[], kind: JobKind): readonly [where: string, values: Values] {
    const where = `subject IN (${marks(subjects)}) AND app = ? AND kind = '${kind}'`;
    return [where, [...subjects, this.#application]];
  }

  // ---- work on jobs

  async claim(kind: JobKind, limit: number, leaseMs = LEASE_MS, only?: string): Promise<Claims> {
    const token = randomUUID();
    const singles = this.#id(`${kind}s`);
    const rows = only === undefined ? await this.#take(kind, singles, limit, leaseMs, token) : [];
    const lists = kind === 'erasure' && rows.length < limit ? await this.#dueLists(limit, only) : [];
    for (const list of lists)
      if (rows.length < limit)
        rows.push(...(await this.#take(kind, list, limit - rows.length, leaseMs, token)));
    const references = await this.#referencesOf(this.#query, rows);
    const { now, nextMs } = await this.#next(kind);
    const claims = rows.map((row): Claim => {
      const reference = references.get(String(row.reference));
      const ageMs = Math.max(0, now - Math.max(Number(row.since), Number(reference?.resumed_at ?? 0)));
      const isOf = reference && referenceOf(reference);
      return { ...jobOf(row), token, dueAt: now + leaseMs, ageMs, reference: isOf };
    });
    if (rows.length > 0 && rows.length === limit) return { claims, nextMs: 0 };
    return { claims, nextMs: only === undefined ? nextMs : undefined };
  }

  async #take(kind: JobKind, queue: string, limit: number, leaseMs: number, token: string): Promise<Row[]> {
    const paused = `SELECT 1 FROM ${this.#facts} WHERE id = ? AND value > ${this.#now} AND value <= ${this.#now} + ${MAX_PAUSE_MS}`;
    const isRunning = kind === 'erasure' ? `AND ${this.#isRunning}` : '';
    const rows = await this.#database.take({
      table: this.#jobs,
      where: `${this.#dueQueue} = ? AND due_at <= ${this.#now} AND NOT EXISTS (${paused}) ${isRunning}`,
      order: 'due_at',
      limit,
      set: `due_at = ${this.#now} + ?, token = ?`,
      values: [
        [queue, this.#id(`${kind}-paused-until`)],
        [leaseMs, token],
      ],
    });
    return rows.toSorted((one, other) => (String(one.id) < String(other.id) ? -1 : 1)); // in any order until here
  }

  /**
   * Whether the reference of an erasure is not paused. Neither a join nor `= 0`, of which Postgres expects few rows: it must
   * read the jobs in the order of their index.
   */
  get #isRunning(): string {
    return `COALESCE((SELECT p.paused FROM ${this.#references} p WHERE p.id = reference), 0) <> 1`;
  }

  /** @param only the name of a reference: no other list */
  async #dueLists(limit: number, only?: string): Promise<readonly string[]> {
    const due = `SELECT 1 FROM ${this.#jobs} j WHERE j.${this.#dueQueue} = r.id AND j.due_at <= ${this.#now}`;
    const where = `${RUNNING_LISTS} AND EXISTS (${due}) ${only === undefined ? '' : 'AND r.id = ?'}`;
    const text = `SELECT id FROM ${this.#references} r WHERE ${where} ORDER BY requested_at LIMIT ${limit}`;
    const values = only === undefined ? [] : [this.#id(referenceKey(only))];
    return (await this.#rows(text, [this.#application, ...values])).map(({ id }) => String(id));
  }

  /** The clock, and until when the next job of a kind is due. */
  async #next(kind: JobKind): Promise<{ readonly now: number; readonly nextMs: number | undefined }> {
    const where = kind === 'erasure' ? `${WAITING} AND ${this.#isRunning}` : WAITING;
    const first = (queue: string): string =>
      `(SELECT due_at FROM ${this.#jobs} WHERE ${this.#dueQueue} = ${queue} AND ${where} ORDER BY due_at LIMIT 1)`;
    const lists = ` UNION ALL SELECT ${first('r.id')} FROM ${this.#references} r WHERE ${RUNNING_LISTS}`;
    const dues = `SELECT ${first('?')} AS due${kind === 'erasure' ? lists : ''}`;
    const pause = `(SELECT value FROM ${this.#facts} WHERE id = ? AND value <= ${this.#now} + ${MAX_PAUSE_MS})`;
    const [row] = await this.#rows(
      `SELECT ${this.#now} AS at, MIN(due) AS due, ${pause} AS paused_until FROM (${dues}) AS dues`,
      [
        this.#id(`${kind}-paused-until`),
        this.#id(`${kind}s`),
        ...(kind === 'erasure' ? [this.#application] : []),
      ],
    );
    const now = Number(row?.at);
    if (row?.due === null || row?.due === undefined) return { now, nextMs: undefined };
    return { now, nextMs: Math.max(0, Number(row.due) - now, Number(row.paused_until ?? 0) - now) };
  }

  renew(claims: readonly Claim[], leaseMs = LEASE_MS): Promise<void> {
    return this.#setHeld(claims, `due_at = ${this.#now} + ?`, [leaseMs]);
  }

  giveBack(claims: readonly Claim[]): Promise<void> {
    return this.#setHeld(claims, `due_at = ${this.#now}, token = NULL`, []);
  }

  postpone(claim: Claim, delayMs: number, progress: Progress): Promise<void> {
    const set = `due_at = ${this.#now} + ?, token = NULL, ${PROGRESS}`;
    return this.#setHeld([claim], set, [delayMs, ...valuesOf(progress)]);
  }

  park(claim: Claim, hint: string, progress: Progress): Promise<void> {
    const set = `state = 'parked', due_at = NULL, token = NULL, ended_at = ${this.#now}, hint = ?, ${PROGRESS}`;
    return this.#setHeld([claim], set, [hint, ...valuesOf(progress)]);
  }

  async #setHeld(claims: readonly Claim[], set: string, values: Values): Promise<void> {
    if (claims.length === 0) return;
    const where = `id IN (${marks(claims)}) AND token IN (${marks(claims)})`;
    const ids = claims.map(({ id }) => this.#id(id));
    const tokens = claims.map(({ token }) => token);
    await this.#query(`UPDATE ${this.#jobs} SET ${set} WHERE ${where}`, [...values, ...ids, ...tokens]);
  }

  async pause(kind: JobKind, ms: number): Promise<void> {
    const id = this.#id(`${kind}-paused-until`);
    await this.#addFact(id, 0);
    const until = `${this.#now} + ?`;
    const isShorter = `(value < ${until} OR value > ${this.#now} + ${MAX_PAUSE_MS})`;
    const text = `UPDATE ${this.#facts} SET value = ${until} WHERE id = ? AND ${isShorter}`;
    await this.#query(text, [ms, id, ms]);
  }

  async counts(kind: JobKind): Promise<Counts> {
    return kind === 'logout' ? this.#logoutCounts() : this.#erasureCounts();
  }

  async #logoutCounts(): Promise<Counts> {
    const queue = this.#id('logouts');
    const waiting = `SELECT id FROM ${this.#jobs} WHERE ${this.#dueQueue} = ? AND ${WAITING}`;
    const parked = `SELECT id FROM ${this.#jobs} WHERE queue = ? AND ${PARKED}`;
    const count = (rows: string): string => `(SELECT COUNT(*) FROM (${rows} LIMIT ${MANY}) AS part)`;
    const oldest = `(SELECT MIN(id) FROM (${waiting} ORDER BY due_at LIMIT ${MAX_SORTED}) AS part)`;
    const text = `SELECT ${count(waiting)} AS waiting, ${count(parked)} AS parked, ${oldest} AS oldest`;
    const [row] = await this.#rows(text, [queue, queue, queue]);
    const id = textOr(row?.oldest)?.slice(this.#id('').length);
    const oldestAt = id === undefined ? undefined : endedAtOf(id);
    return { waiting: Number(row?.waiting), parked: Number(row?.parked), oldestAt };
  }

  async #erasureCounts(): Promise<Counts> {
    const unfinished = `r.app = ? AND r.finished_at IS NULL`;
    const earliest = `SELECT requested_at, total - (${ENDED_USERS}) AS users FROM ${this.#references} r
      WHERE ${unfinished} ORDER BY requested_at LIMIT ${MANY}`;
    const singles = `SELECT id FROM ${this.#jobs} WHERE queue = ? AND ${PARKED} LIMIT ${MANY}`;
    const ofLists = `SELECT j.id FROM ${this.#references} r JOIN ${this.#jobs} j ON j.queue = r.id AND ${PARKED}
      WHERE ${unfinished} AND r.is_list > 0 LIMIT ${MANY}`;
    const text = `SELECT SUM(users) AS unended, MIN(requested_at) AS oldest, (SELECT COUNT(*) FROM (${singles}) AS singles)
      + (SELECT COUNT(*) FROM (${ofLists}) AS of_lists) AS parked FROM (${earliest}) AS earliest`;
    const [row] = await this.#rows(text, [this.#singles, this.#application, this.#application]);
    const [unended, parked] = [Number(row?.unended ?? 0), Number(row?.parked)];
    return { waiting: Math.max(0, unended - parked), parked, oldestAt: numberOr(row?.oldest) };
  }

  // ---- erasures

  addErasures(request: NewReference, erasures: readonly NewErasure[]): Promise<Added> {
    const { list, mark } = request;
    const id = this.#id(referenceKey(request.reference));
    return this.#database.transaction(async (query): Promise<Added> => {
      const mayBeNew = request.known === undefined && list?.isFirst !== false;
      const isNew = mayBeNew && (await this.#insertReference(query, id, request)) === 1;
      const row = await this.#reference(query, id, this.#database.forUpdate);
      if (!row) return { conflict: request.known ? 'changed' : 'other-reader', reference: undefined };
      const known = referenceOf(row);
      const added = await this.#unknown(query, erasures);
      // Before anything is changed: a conflict leaves nothing in a transaction of the host's.
      const conflict = conflictOf(known, row.reader, request, isNew, added.length > 0);
      if (conflict) return { conflict, reference: known };
      const count = await this.#insertErasures(query, row, added);
      const completed = list?.isLast === true && !known.complete;
      const isReopened = count > 0 && known.finishedAt !== undefined;
      const reference: Reference = {
        ...known,
        total: known.total + count,
        complete: known.complete || completed,
        mark: completed || isReopened ? mark : known.mark,
        ...(isReopened && {
          finishedAt: undefined,
          requestedAt: request.requestedAt,
          requestedBy: request.requestedBy,
        }),
      };
      await query(
        `UPDATE ${this.#references} SET total = total + ?, complete = ?, reader = ?, mark = ?, requested_at = ?, requested_by = ?
         ${isReopened ? ', finished_at = NULL, overdue_ms = 0' : ''} WHERE id = ?`,
        [
          count,
          Number(reference.complete),
          list?.isFirst === true ? list.reader : row.reader,
          reference.mark,
          reference.requestedAt,
          reference.requestedBy ?? null,
          id,
        ],
      );
      return { added: count, completed, reference };
    });
  }

  /** @returns 1, or 0 if the reference is there already */
  #insertReference(query: Query, id: string, given: NewReference): Promise<number> {
    const { reference: name, mode, requestedBy = null, requestedAt, list, mark } = given;
    const request = { name, mode, requested_by: requestedBy, requested_at: requestedAt, mark };
    const kind = list
      ? { is_list: LIST, reader: list.reader, complete: 0 }
      : { is_list: 0, reader: null, complete: 1 };
    const row = { id, app: this.#application, ...request, ...kind };
    return this.#insertNew(query, this.#references, [row], UNSTARTED);
  }

  /** @returns those whom a reference has not, under no key */
  async #unknown(query: Query, erasures: readonly NewErasure[]): Promise<readonly NewErasure[]> {
    const idsOf = ({ id, formerIds }: NewErasure): string[] =>
      [id, ...formerIds].map((each) => this.#id(each));
    const ids = erasures.flatMap(idsOf);
    if (ids.length === 0) return [];
    const { rows } = await query(`SELECT id FROM ${this.#jobs} WHERE id IN (${marks(ids)})`, ids);
    const known = new Set(rows.map(({ id }) => id));
    return erasures.filter((erasure) => !idsOf(erasure).some((id) => known.has(id)));
  }

  async #insertErasures(query: Query, { id, is_list }: Row, added: readonly NewErasure[]): Promise<number> {
    const queue = Number(is_list) > 0 ? id : this.#singles;
    const place = { app: this.#application, queue, kind: 'erasure', reference: id, details: '' };
    const rows = added.map((user) => ({
      id: this.#id(user.id),
      ...place,
      subject: user.subject,
      sealed: user.sealed,
    }));
    return this.#insertNew(query, this.#jobs, rows, { due_at: this.#now, since: this.#now, ...UNTRIED });
  }

  async erasuresOf(subjects: readonly string[], which: 'open' | 'done'): Promise<readonly Erasure[]> {
    if (subjects.length === 0) return [];
    const [where, values] = this.#jobsOf(subjects, 'erasure');
    const rest = which === 'open' ? `state <> 'done'` : `state = 'done' ORDER BY ended_at DESC LIMIT 1000`;
    const rows = await this.#rows(`SELECT * FROM ${this.#jobs} WHERE ${where} AND ${rest}`, values);
    const references = await this.#referencesOf(this.#query, rows);
    return rows.flatMap((row) => {
      const reference = references.get(String(row.reference));
      return reference ? [{ job: jobOf(row), reference: referenceOf(reference) }] : [];
    });
  }

  async markSending(claim: Claim, mark: string): Promise<boolean> {
    // No lock on the reference: a request that is about to be sent cannot be told from one that was.
    const asClaimed = `SELECT 1 FROM ${this.#references} r WHERE r.id = reference AND COALESCE(r.mark, '') = ?
      AND r.paused = 0 AND (r.canceled = 0 OR uncertain = 1)`;
    const where = `id = ? AND token = ? AND EXISTS (${asClaimed})`;
    const values = [this.#id(claim.id), claim.token, claim.reference?.mark ?? ''];
    const { count } = await this.#query(
      `UPDATE ${this.#jobs} SET uncertain = 1, uncertain_mark = ? WHERE ${where}`,
      [mark, ...values],
    );
    // Some drivers of MySQL do not count rows that have the value already.
    const marked = `SELECT 1 FROM ${this.#jobs} WHERE ${where} AND uncertain_mark = ?`;
    if (count === 0 && (await this.#rows(marked, [...values, mark])).length === 0) return false;
    if (claim.reference?.started === false) {
      const start = `UPDATE ${this.#references} SET started = 1 WHERE id = ? AND started = 0`;
      await this.#query(start, [this.#id(claim.reference.key)]);
    }
    return true;
  }

  finishErasure(
    job: Pick<Job, 'id'>,
    outcome: ErasureOutcome,
    attempts: number,
    receipt: string,
  ): Promise<EndedUser> {
    const id = this.#id(job.id);
    return this.#database.transaction(async (query) => {
      const set = `${END}, outcome = ?, attempts = ?, details = ?, ended_at = ${this.#now}`;
      const text = `UPDATE ${this.#jobs} SET ${set} WHERE id = ? AND state <> 'done'`;
      const isNew = (await query(text, [outcome, attempts, receipt, id])).count === 1;
      const reference = id.slice(0, id.indexOf('.'));
      return { isNew, finished: isNew ? await this.#countUsers(query, reference, outcome, 1) : undefined };
    });
  }

  /** In the transaction in which users end. @returns the reference if it is finished by this */
  async #countUsers(
    query: Query,
    id: string,
    outcome: ErasureOutcome,
    count: number,
  ): Promise<Reference | undefined> {
    const isOver = `(complete = 1 OR canceled = 1) AND ${ENDED_USERS} + ? >= total`;
    // MySQL assigns from the left to the right, and reads what it has assigned.
    const set = `finished_at = CASE WHEN ${isOver} THEN ${this.#now} ELSE NULL END, ${COUNTERS[outcome]} = ${COUNTERS[outcome]} + ?`;
    const text = `UPDATE ${this.#references} SET ${set} WHERE id = ? AND finished_at IS NULL`;
    if ((await query(text, [count, count, id])).count === 0) return undefined;
    const row = await this.#reference(query, id);
    const reference = row && referenceOf(row);
    return reference?.finishedAt === undefined ? undefined : reference;
  }

  async reference(reference: string): Promise<ReferenceStatus | undefined> {
    const row = await this.#reference(this.#query, this.#id(referenceKey(reference)));
    return row && this.#statusOf(row);
  }

  async #statusOf(row: Row): Promise<ReferenceStatus> {
    const reference = referenceOf(row);
    if (reference.finishedAt !== undefined) return { ...reference, parked: 0, retrying: undefined };
    const [where, values] = this.#usersOf(row);
    const count = `SELECT COUNT(*) AS parked FROM ${this.#jobs} WHERE ${where} AND ${PARKED}`;
    const [due] = this.#usersOf(row, this.#dueQueue);
    const latest = `SELECT * FROM ${this.#jobs} WHERE ${due} AND ${WAITING} AND token IS NULL ORDER BY due_at DESC LIMIT ${LATEST_DUE}`;
    const [counted] = await this.#rows(count, values);
    const retrying = (await this.#rows(latest, values)).findLast(({ failures }) => Number(failures) > 0);
    return { ...reference, parked: Number(counted?.parked), retrying: retrying && jobOf(retrying) };
  }

  /** The jobs of a reference: those of a list have a queue of their own, single ones are few. */
  #usersOf({ id, is_list }: Row, queue = 'queue'): readonly [where: string, values: readonly string[]] {
    if (Number(is_list) > 0) return [`${queue} = ?`, [String(id)]];
    return ['id > ? AND id < ?', rangeOf(String(id))];
  }

  async setPaused({ key, mark: known }: Reference, paused: boolean, mark: string): Promise<boolean> {
    const set = paused ? 'paused = 1' : `paused = 0, resumed_at = ${this.#now}`;
    const where = `id = ? AND COALESCE(mark, '') = ? AND finished_at IS NULL`;
    const text = `UPDATE ${this.#references} SET ${set}, mark = ? WHERE ${where}`;
    return (await this.#count(text, [mark, this.#id(key), known])) === 1;
  }

  async retryErasures(reference: string): Promise<number> {
    const row = await this.#reference(this.#query, this.#id(referenceKey(reference)));
    if (!row) return 0;
    const ids = (await this.#parkedOf(this.#query, row)).map((job) => job.id);
    const retry = `UPDATE ${this.#jobs} SET ${this.#retried}`;
    return this.#changeAll(this.#query, retry, ids, `AND state = 'parked'`);
  }

  /** Some of them, the longest parked first. */
  async #parkedOf(query: Query, reference: Row, forUpdate = ''): Promise<readonly Row[]> {
    const [where, values] = this.#usersOf(reference);
    const parked = `${where} AND ${PARKED} ORDER BY ended_at LIMIT ${STEP}`;
    return (await query(`SELECT * FROM ${this.#jobs} WHERE ${parked} ${forUpdate}`, values)).rows;
  }

  async cancelErasures({ key, mark: known }: Reference, mark: string): Promise<CanceledUsers> {
    const { forUpdate } = this.#database;
    const id = this.#id(key);
    const resumed = `CASE WHEN paused = 1 THEN ${this.#now} ELSE resumed_at END`; // first, because of MySQL
    const set = `resumed_at = ${resumed}, canceled = 1, paused = 0, mark = ?`;
    const where = `id = ? AND COALESCE(mark, '') = ? AND finished_at IS NULL AND canceled = 0`;
    await this.#query(`UPDATE ${this.#references} SET ${set} WHERE ${where}`, [mark, id, known]);
    const row = await this.#reference(this.#query, id);
    if (row?.finished_at !== null) return { more: false, uncertain: [], finished: undefined };
    if (!referenceOf(row).canceled) return { more: true, uncertain: [], finished: undefined };
    return this.#database.transaction(async (step) => {
      const [users, values] = this.#usersOf(row, this.#dueQueue);
      const unsent = `SELECT id FROM ${this.#jobs} WHERE ${users} AND ${WAITING} AND uncertain = 0
        ORDER BY due_at LIMIT ${STEP} ${forUpdate}`;
      const waiting = (await step(unsent, values)).rows;
      const parked = (await this.#parkedOf(step, row, forUpdate)).map(jobOf);
      const unsentParked = parked.filter((job) => job.uncertain === undefined);
      const removed = [...waiting.map((job) => job.id), ...unsentParked.map((job) => this.#id(job.id))];
      await this.#changeAll(step, `DELETE FROM ${this.#jobs}`, removed);
      const finished = await this.#countUsers(step, id, 'canceled', removed.length);
      const uncertain = parked.filter((job) => job.uncertain !== undefined);
      return { more: waiting.length === STEP || parked.length > 0, uncertain, finished };
    });
  }

  async references(limit: number, after?: Reference): Promise<readonly ReferenceStatus[]> {
    const before = after ? 'AND requested_at <= ? AND (requested_at < ? OR id < ?)' : '';
    const text = `SELECT * FROM ${this.#references} WHERE app = ? ${before} ORDER BY requested_at DESC, id DESC LIMIT ${limit}`;
    const values = after ? [after.requestedAt, after.requestedAt, this.#id(after.key)] : [];
    const rows = await this.#rows(text, [this.#application, ...values]);
    const statuses: ReferenceStatus[] = [];
    for (const row of rows) statuses.push(await this.#statusOf(row));
    return statuses;
  }

  async receipts(reference: string, limit: number, after?: string): Promise<readonly Erasure[]> {
    const row = await this.#reference(this.#query, this.#id(referenceKey(reference)));
    if (!row) return [];
    const [from, to] = rangeOf(String(row.id));
    const where = `queue = ? AND kind = 'erasure' AND state = 'done' AND id > ? AND id < ?`;
    const text = `SELECT * FROM ${this.#jobs} WHERE ${where} ORDER BY id LIMIT ${limit}`;
    const queue = Number(row.is_list) > 0 ? row.id : this.#singles;
    const rows = await this.#rows(text, [queue, after === undefined ? from : this.#id(after), to]);
    return rows.map((job) => ({ job: jobOf(job), reference: referenceOf(row) }));
  }

  async claimOverdue(agesMs: readonly number[]): Promise<readonly Reference[]> {
    const [first] = agesMs;
    if (first === undefined) return [];
    // Numbers in the text: Postgres would take placeholders in a CASE for text.
    const ages = agesMs.toReversed().map((age) => `WHEN requested_at <= ${this.#now} - ${age} THEN ${age}`);
    const passed = `CASE ${ages.join(' ')} ELSE 0 END`;
    const rows = await this.#database.take({
      table: this.#references,
      where: `app = ? AND finished_at IS NULL AND requested_at <= ${this.#now} - ${first} AND overdue_ms < ${passed}`,
      order: 'requested_at',
      limit: REFERENCES,
      set: `overdue_ms = ${passed}`,
      values: [[this.#application], []],
    });
    return rows.map(referenceOf);
  }

  async #reference(query: Query, id: string, forUpdate = ''): Promise<Row | undefined> {
    return (await query(`SELECT * FROM ${this.#references} WHERE id = ? ${forUpdate}`, [id])).rows[0];
  }

  /** The references of jobs, by their ids. */
  async #referencesOf(query: Query, jobs: readonly Row[]): Promise<ReadonlyMap<string, Row>> {
    const ids = [...new Set(jobs.map(({ reference }) => reference))].filter((id) => typeof id === 'string');
    if (ids.length === 0) return new Map();
    const { rows } = await query(`SELECT * FROM ${this.#references} WHERE id IN (${marks(ids)})`, ids);
    return new Map(rows.map((row) => [String(row.id), row]));
  }

  // ---- sessions

  async registerSession(
    { id: sessionId, subject, sealed }: LiveSession,
    expiresAt: number,
    liveMs: number,
    isFound = false,
  ): Promise<boolean> {
    const id = this.#id(sessionId);
    const open = `(ended_at IS NULL OR ended_at <= ${this.#now} - ${ENDED_SESSION_MS})`;
    const set = `subject = ?, sealed = ?, expires_at = ?, due_at = ${this.#now} + ?, token = NULL, ended_at = NULL`;
    const update = `UPDATE ${this.#sessions} SET ${set} WHERE id = ? ${isFound ? '' : `AND ${open}`}`;
    if ((await this.#count(update, [subject, sealed, expiresAt, liveMs, id])) > 0) return true;
    const row = { id, app: this.#application, subject, sealed, expires_at: expiresAt, due_at: liveMs };
    const fromNow = { due_at: `${this.#now} + ?` };
    if ((await this.#insertNew(this.#query, this.#sessions, [row], fromNow)) > 0) return true;
    return (await this.#rows(`SELECT 1 FROM ${this.#sessions} WHERE id = ? AND ${open}`, [id])).length > 0;
  }

  endSession(
    session: LiveSession,
    logout: NewLogout | undefined,
    token?: string,
    aliveMs = ENDED_SESSION_MS,
  ): Promise<boolean> {
    const id = this.#id(session.id);
    const isHeld = token === undefined ? '' : 'AND token = ?';
    const where = `id = ? AND (ended_at IS NULL OR ended_at <= ${this.#now} - ?) ${isHeld}`;
    const withinMs = Math.ceil(Math.min(aliveMs, ENDED_SESSION_MS));
    const values = [id, withinMs, ...(token === undefined ? [] : [token])];
    return this.#database.transaction(async (query) => {
      if (!logout) {
        const { count } = await query(`DELETE FROM ${this.#sessions} WHERE ${where}`, values);
        if (count > 0 || token !== undefined) return count > 0;
        return (await query(`SELECT 1 FROM ${this.#sessions} WHERE id = ?`, [id])).rows.length === 0;
      }
      const end = `UPDATE ${this.#sessions} SET sealed = '', due_at = NULL, token = NULL, ended_at = ${this.#now} WHERE ${where}`;
      const isEnded =
        (await query(end, values)).count > 0 ||
        (token === undefined && (await this.#insertEnded(query, id, session)) > 0);
      if (isEnded) await this.#insertLogouts(query, [logout]);
      return isEnded;
    });
  }

  #insertEnded(query: Query, id: string, { subject }: LiveSession): Promise<number> {
    const row = { id, app: this.#application, subject, sealed: '', expires_at: 0 };
    return this.#insertNew(query, this.#sessions, [row], { ended_at: this.#now });
  }

  async dueSessions(limit: number, leaseMs = LEASE_MS): Promise<readonly DueSession[]> {
    const token = randomUUID();
    const rows = await this.#database.take({
      table: this.#sessions,
      where: `app = ? AND due_at <= ${this.#now}`,
      order: 'due_at',
      limit,
      set: `due_at = ${this.#now} + ?, token = ?`,
      values: [[this.#application], [leaseMs, token]],
    });
    return rows.map((row) => ({
      id: idOf(row),
      subject: String(row.subject),
      sealed: String(row.sealed),
      expiresAt: Number(row.expires_at),
      token,
    }));
  }

  async postponeSession({ id, token }: DueSession, liveMs: number): Promise<void> {
    const set = `due_at = ${this.#now} + ?, token = NULL`;
    const text = `UPDATE ${this.#sessions} SET ${set} WHERE id = ? AND token = ?`;
    await this.#query(text, [liveMs, this.#id(id), token]);
  }

  // ---- rate limit

  async takeSlot(slots: number, perMs: number): Promise<number> {
    if (this.#slots < slots) await this.#insertSlots(slots);
    const taken = await this.#database.take({
      table: this.#rate,
      where: `app = ? AND taken_at <= ${this.#now} - ? AND slot < ?`,
      order: 'taken_at',
      limit: 1,
      set: `taken_at = ${this.#now}`,
      values: [[this.#application, perMs, slots], []],
    });
    if (taken.length > 0) return 0;
    const text = `SELECT MIN(taken_at) + ? - ${this.#now} AS ms, MAX(taken_at) - ${this.#now} AS ahead
      FROM ${this.#rate} WHERE app = ? AND slot < ?`;
    const [row] = await this.#rows(text, [perMs, this.#application, slots]);
    if (row?.ms === null) this.#slots = 0; // somebody has emptied the table
    // Taken in the future: the clock was set back, or somebody else wrote it. Without this the slot would never be free.
    const repair = `UPDATE ${this.#rate} SET taken_at = ${this.#now} WHERE app = ? AND taken_at > ${this.#now}`;
    if (Number(row?.ahead) > 0) await this.#query(repair, [this.#application]);
    return Math.min(Math.max(1, Number(row?.ms)), perMs);
  }

  async #insertSlots(slots: number): Promise<void> {
    const app = this.#application;
    for (let from = 0; from < slots; from += STEP) {
      const some = Array.from({ length: Math.min(STEP, slots - from) }, (_, n) => from + n);
      const rows = some.map((slot) => ({ id: this.#id(String(slot)), app, slot, taken_at: 0 }));
      await this.#insertNew(this.#query, this.#rate, rows);
    }
    this.#slots = slots;
  }

  // ---- the storage itself

  async prune({ historyMs, receiptsMs }: { historyMs: number; receiptsMs: number }): Promise<boolean> {
    const logouts = `queue = ? AND state = 'done' AND ended_at < ${this.#now} - ? ORDER BY ended_at`;
    const sessions = `app = ? AND ended_at <= ${this.#now} - ? ORDER BY ended_at`;
    const references = `app = ? AND finished_at < ${this.#now} - ?`;
    const removed = [
      await this.#adopt(),
      await this.#remove(this.#jobs, logouts, [this.#id('logouts'), historyMs], PRUNED),
      await this.#remove(this.#sessions, sessions, [this.#application, ENDED_SESSION_MS], PRUNED),
    ];
    const text = `SELECT id FROM ${this.#references} WHERE ${references} ORDER BY finished_at LIMIT ${PRUNED}`;
    let left = PRUNED;
    for (const { id } of await this.#rows(text, [this.#application, receiptsMs])) {
      if (left === 0) break;
      left -= await this.#removeReference(String(id), receiptsMs, left);
      removed.push(1);
    }
    return removed.some((count) => count > 0);
  }

  /**
   * Takes over some rows of a process of version 1, which may still run: nothing that it has claimed, no list that it reads.
   * @returns how many
   */
  async #adopt(): Promise<number> {
    let count = 0;
    for (const kind of ['logout', 'erasure'] as const)
      for (const where of [`due_at <= ${this.#now}`, 'ended_at IS NOT NULL']) {
        const former = this.#id(kind);
        const text = `SELECT id FROM ${this.#jobs} WHERE queue = ? AND ${where} LIMIT ${STEP}`;
        const ids = (await this.#rows(text, [former])).map(({ id }) => id);
        const adopt = `UPDATE ${this.#jobs} SET queue = '${this.#id(`${kind}s`)}'`;
        count += await this.#changeAll(
          this.#query,
          adopt,
          ids,
          `AND (due_at IS NULL OR due_at <= ${this.#now})`,
        );
      }
    const lists = `UPDATE ${this.#references} SET is_list = ${LIST} WHERE app = ? AND is_list = 1 AND (complete = 1 OR canceled = 1)`;
    return count + (await this.#count(lists, [this.#application]));
  }

  /** Removes a reference with its last receipts. @returns how many of them, at most `limit` */
  #removeReference(id: string, receiptsMs: number, limit: number): Promise<number> {
    return this.#database.transaction(async (query) => {
      const row = await this.#reference(query, id, this.#database.forUpdate);
      const isOld = `SELECT 1 FROM ${this.#references} WHERE id = ? AND finished_at < ${this.#now} - ?`;
      if (!row || (await query(isOld, [id, receiptsMs])).rows.length === 0) return 0; // it was opened again
      const count = await this.#remove(
        this.#jobs,
        'id > ? AND id < ? ORDER BY id',
        rangeOf(id),
        limit,
        query,
      );
      if (count < limit) await query(`DELETE FROM ${this.#references} WHERE id = ?`, [id]);
      return count;
    });
  }

  /** @param where of the rows, and their order: without one, Postgres would read the table past all rows that were removed */
  async #remove(
    table: string,
    where: string,
    values: Values,
    limit: number,
    query = this.#query,
  ): Promise<number> {
    const { rows } = await query(`SELECT id FROM ${table} WHERE ${where} LIMIT ${limit}`, values);
    const ids = rows.map(({ id }) => id);
    await this.#changeAll(query, `DELETE FROM ${table}`, ids);
    return ids.length;
  }

  /** @param change an `UPDATE` or a `DELETE` of the rows with these ids @returns how many it changed */
  async #changeAll(query: Query, change: string, ids: Values, and = ''): Promise<number> {
    if (ids.length === 0) return 0;
    return (await query(`${change} WHERE id IN (${marks(ids)}) ${and}`, ids)).count;
  }

  async birth(): Promise<string | undefined> {
    const [row] = await this.#rows(`SELECT value FROM ${this.#facts} WHERE id = ?`, [this.#id('birth')]);
    return row && String(row.value);
  }

  close(): Promise<void> {
    return this.#database.close();
  }

  #id(id: string): string {
    return `${this.#application}/${id}`;
  }

  async #addFact(id: string, value: number): Promise<void> {
    await this.#insertNew(this.#query, this.#facts, [{ id, value }]);
  }

  /**
   * @param rows all with the same columns
   * @param set columns as SQL: with a placeholder, for the value of the row
   * @returns how many of the rows were not there
   */
  async #insertNew(query: Query, table: string, rows: readonly Row[], set: Columns = {}): Promise<number> {
    const [first] = rows;
    if (!first) return 0;
    const columns = { ...Object.fromEntries(Object.keys(first).map((name) => [name, '?'])), ...set };
    const values = rows.flatMap((row) => Object.values(row));
    return (await query(this.#database.insertNew(table, columns, rows.length), values)).count;
  }

  async #rows(text: string, values: Values = []): Promise<readonly Row[]> {
    return (await this.#query(text, values)).rows;
  }

  async #count(text: string, values: Values): Promise<number> {
    return (await this.#query(text, values)).count;
  }
}

const PROGRESS = 'attempts = ?, failures = ?, rejections = ?, uncertain = ?, uncertain_mark = ?, cause = ?';
const valuesOf = ({ attempts, failures, rejections, uncertain, cause }: Progress): Values => [
  attempts,
  failures,
  rejections,
  Number(uncertain !== undefined),
  uncertain ?? null,
  cause ?? null,
];

/** A placeholder for each of the items. */
const marks = (items: readonly unknown[]): string => items.map(() => '?').join(', ');

/** The ids of the jobs of a reference are between these: a slash follows a dot. */
const rangeOf = (reference: string): readonly string[] => [`${reference}.`, `${reference}/`];
