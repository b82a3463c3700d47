import type { JobKind, Storage } from './storage.js';

/**
 * The work of a process without the options of the app. It claims, sends and records; it does not park, give up, prune, or
 * report what is overdue, because its settings and keys need not be those of the app.
 */
export interface Guest {
  /** The kinds of jobs that it works on. */
  readonly kinds: readonly JobKind[];
  /** The only list whose users it erases. */
  readonly reference?: string;
}

/** Opens the storage of an application: the option `storage`. */
export interface StorageEngine {
  /** `memory`, `sqlite`, `postgres` or `mysql`: for logs, statistics and health. */
  readonly name: string;
  /** Whether what waits outlives the process. */
  readonly durable: boolean;
  /** What a crash loses, for the log line at boot. */
  readonly guarantee: string;
  /**
   * Set by a process that works on the storage of an app without the options of that app, such as the command line.
   * @internal
   */
  readonly guest?: Guest;
  /**
   * Creates the tables that are missing, unless the engine was told not to.
   * @param application what all of its rows belong to: letters, digits, `-` and `_`, at most 64
   * @throws {@link StorageError} with the cure: no such server, no rights, a newer version, tables are missing
   */
  open(application: string): Promise<OpenStorage>;
}

export interface OpenStorage {
  readonly storage: Storage;
  /** Where it is, without passwords: the path of a file, host and database of a server. */
  readonly place: string | undefined;
  /** Settings that an operator should change. */
  readonly warnings: readonly StorageWarning[];
  /** A storage key of its own, for engines that keep one beside the data. */
  readonly key?: string;
}

/** A setting of the database that an operator should change. */
export interface StorageWarning {
  readonly problem: string;
  readonly hint: string;
}
