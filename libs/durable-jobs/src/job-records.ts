import { isReadable, readRecord, recordText, type RecordType, type Transaction } from './transaction.js';

export const STATES = ['pending', 'parked'] as const;
/** Where a job stands: it waits to be worked, or it is parked until somebody retries it. */
export type JobState = (typeof STATES)[number];

/** A job that waits in a storage, or that this process has claimed. */
export interface Job<T> {
  /** Unique in its store. What stands before a `/` is its group. Printable ASCII without `:`, at most 1,300 characters. */
  readonly id: string;
  /** Whatever it shall be found by, such as the hash of a user; `''`: nothing. */
  readonly key: string;
  /** Random: a later job of the same id has another. */
  readonly born: string;
  /** Its place in the order of the jobs, as it was last written; a claim moves its due row only. See {@link momentOf}. */
  readonly position: string;
  readonly value: T;
}

/** A job as the storage has it. */
export interface FoundJob<T> {
  readonly id: string;
  readonly state: JobState;
  /** The text of its record. */
  readonly text: string;
  /** Absent when its record is damaged, or was written by a newer version or with another key. */
  readonly job?: Job<T>;
  /** What of the record is there although its value cannot be read. */
  readonly stored?: StoredJob;
  readonly parked?: ParkedRecord;
}

/** How the value of a job is stored. */
export interface JobCodec<T> {
  /** @returns an object for `JSON.stringify` */
  encode(value: T, id: string, key: string): object;
  /** @returns `undefined` when it cannot be read, for example when no key opens it. Must not throw. */
  decode(stored: object, id: string, key: string): T | undefined;
}

/** A job as the storage has it, with its value as data that can be written as JSON. */
export interface StoredJob extends Omit<Job<never>, 'value'> {
  readonly data: object;
}

/** A parked record as it was found: what cannot be read now may be readable with another key or version. */
export interface ParkedRecord {
  readonly id: string;
  readonly record: string;
  /** Why it is parked, and what to do about it. */
  readonly hint: string;
  /** By the clock of the machine, in milliseconds. */
  readonly parkedAt: number;
  /** Its place in the order of the parked jobs. */
  readonly since: string;
}

const FAMILIES = [...STATES, 'due', 'key', 'since', 'aside', 'paused'] as const;
type Family = (typeof FAMILIES)[number];

/** The families of keys that the jobs of one name need in the storage. */
export const jobFamilies = (name: string): readonly string[] => FAMILIES.map((family) => `${name}${family}`);

const typeOf = <T extends { readonly id: string }>(
  texts: readonly (keyof T)[],
  numbers: readonly (keyof T)[],
  objects: readonly (keyof T)[] = [],
): RecordType<T> => ({
  version: 1,
  key: ({ id }) => id,
  indexes: () => [],
  isRecord: (value): value is T =>
    texts.every((name) => typeof (value as T)[name] === 'string') &&
    numbers.every((name) => typeof (value as T)[name] === 'number') &&
    objects.every((name) => typeof (value as T)[name] === 'object' && (value as T)[name] !== null),
});
const JOB = typeOf<StoredJob>(['id', 'key', 'born', 'position'], [], ['data']);
const PARKED = typeOf<ParkedRecord>(['id', 'record', 'hint', 'since'], ['parkedAt']);

/** The moment of a position, in whole milliseconds, by the clock of the storage. */
export const momentOf = (position: string): number => Math.floor(Number(position.slice(1)) / 1000);

/** Jobs of priority 0 go before those of 1. */
export const priorityOf = (position: string): number => Number(position.charAt(0));

export const groupOf = (id: string): string | undefined =>
  id.includes('/') ? id.slice(0, id.indexOf('/')) : undefined;

/** The id at the end of a key. */
export const idOf = (key: string): string => key.slice(key.lastIndexOf(':') + 1);

/** All keys that begin with the prefix. */
export const startingWith = (prefix: string): readonly [from: string, to: string] => [
  prefix,
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1),
];

/**
 * The rows of the jobs of one kind. The only place that knows them:
 *
 * - `pending:<id>`, `parked:<id>`: the record
 * - `due:<position>:<id>`: when it is due, with `born` as its value; only a pending job that is not aside has one. It is
 *   the lease of a claimed job, and decides between processes
 * - `key:<key>:<id>`: for each job that has a key
 * - `since:<position>:<id>`: the order of the parked
 * - `aside:<id>`: a pending job of a paused group; its value is its position and `born`
 * - `paused:<group>`: `paused <id of the pause>`, then `resumed <id of the resumption>` until nothing is aside
 */
export class JobRecords<T> {
  /**
   * @param name begins the names of the families
   * @param prefix begins all keys in them: with it several kinds share the families
   */
  constructor(
    private readonly name: string,
    private readonly codec: JobCodec<T>,
    private readonly prefix = '',
  ) {}

  key(family: Family, rest: string): string {
    return `${this.name}${family}:${this.prefix}${rest}`;
  }

  family(family: Family): string {
    return `${this.name}${family}`;
  }

  /** All keys of a family that begin with `start`. */
  range(family: Family, start = ''): readonly [from: string, to: string] {
    return startingWith(this.key(family, start));
  }

  text({ value, ...job }: Job<T>): string {
    const data = this.codec.encode(value, job.id, job.key);
    return recordText<StoredJob>(JOB, { ...job, data });
  }

  read(state: JobState, id: string, text: string): FoundJob<T> {
    const wrapper = state === 'parked' ? readRecord(PARKED, id, text) : undefined;
    const parked = wrapper && isReadable(wrapper) ? wrapper : undefined;
    const read = readRecord(JOB, id, parked?.record ?? text);
    const stored = isReadable(read) ? read : undefined;
    const value = stored && this.codec.decode(stored.data, id, stored.key);
    const found = { id, state, text, stored, ...(parked && { parked }) };
    if (stored === undefined || value === undefined) return found;
    const { key, born, position } = stored;
    return { ...found, job: { id, key, born, position, value } };
  }

  /** @param due the key of its due row; `undefined`: its group is paused, and it is put aside */
  setPending(
    transaction: Pick<Transaction, 'set'>,
    job: Job<T>,
    text: string,
    due: string | undefined,
  ): void {
    transaction.set(this.key('pending', job.id), text);
    if (due === undefined) transaction.set(this.key('aside', job.id), `${job.position} ${job.born}`);
    else transaction.set(due, job.born);
  }

  setKey(transaction: Pick<Transaction, 'set'>, { key, id }: Pick<Job<T>, 'key' | 'id'>, value?: ''): void {
    if (key !== '') transaction.set(this.key('key', `${key}:${id}`), value);
  }

  /** Puts a parked job in the place of the pending one. */
  setParked(transaction: Pick<Transaction, 'set'>, parked: ParkedRecord): void {
    const { id, since } = parked;
    transaction.set(this.key('pending', id), undefined);
    transaction.set(this.key('parked', id), recordText(PARKED, parked));
    transaction.set(this.key('since', `${since}:${id}`), '');
  }

  /** Removes the rows of a job, but for its due row. @param stored as much as its rows need; absent: it is damaged */
  remove(
    transaction: Transaction,
    { id, state, parked }: Pick<FoundJob<T>, 'id' | 'state' | 'parked'>,
    stored: Pick<StoredJob, 'id' | 'key'> | undefined,
  ): void {
    transaction.set(this.key(state, id), undefined);
    if (parked) transaction.set(this.key('since', `${parked.since}:${id}`), undefined);
    if (stored) this.setKey(transaction, stored);
  }
}
