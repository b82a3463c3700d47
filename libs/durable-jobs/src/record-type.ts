/** One kind of record: where it is kept, and which index rows lead to it. The one place that knows both. */
export interface RecordType<T extends object> {
  /** Written with each record, as its field `v`. A record with a higher version is {@link UnreadableRecord} to this one. */
  readonly version: number;

  key(record: T): string;

  /** The keys of its index rows, whose values are empty. A record that changes takes its index rows along. */
  indexes(record: T): readonly string[];

  /** Whether what was read has all that a record of this type or an older version of it needs. */
  isRecord(value: object): value is T;
}

/** A stored text that is no record of its type. It must stop nothing: put it aside with a hint. */
export class UnreadableRecord {
  constructor(
    readonly key: string,
    readonly text: string,
    /** Whether a newer version wrote it; otherwise it is damaged. */
    readonly isNewer: boolean,
  ) {}
}

export type ReadRecord<T> = T | UnreadableRecord | undefined;

export function isReadable<T extends object>(found: ReadRecord<T>): found is T {
  return found !== undefined && !(found instanceof UnreadableRecord);
}

export function readRecord<T extends object>(
  type: RecordType<T>,
  key: string,
  text: string,
): T | UnreadableRecord {
  const { v: version, ...record } = objectOf(text);
  const isNewer = typeof version === 'number' && version > type.version;
  // A record that was copied to another key is damage, too.
  if (typeof version !== 'number' || isNewer || !type.isRecord(record) || type.key(record) !== key)
    return new UnreadableRecord(key, text, isNewer);
  return record;
}

/** @returns the text that a storage keeps */
export function recordText<T extends object>(type: RecordType<T>, record: T): string {
  // Not of a copy with the version: every job is written several times.
  return `{"v":${type.version},${JSON.stringify(record).slice(1)}`;
}

function objectOf(text: string): Partial<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text)) as Partial<Record<string, unknown>>;
  } catch {
    return {};
  }
}
