import { createHash, randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { LoggerService } from '@nestjs/common';
import { Subject } from 'rxjs';
import { DebateSpaceOptionsError, StorageError, type OptionProblem } from '../errors.js';
import type { DebateSpaceEvent, Emit } from '../events.js';
import { SecretKeyError, Secret, type SecretSource } from '../secrets/secret.js';
import { Keyring } from '../secrets/keyring.js';
import { LateStorage } from '../storage/late-storage.js';
import { MemoryStorage } from '../storage/memory-storage.js';
import type { OpenStorage, StorageEngine } from '../storage/engine.js';
import type { Storage } from '../storage/storage.js';
import { StorageWatch } from '../storage/storage-watch.js';
import { optionProblem, type ResolvedOptions } from './resolve-options.js';

/** The parts that all providers of one application share. */
export class Application {
  /** Aborts the calls that wait for the service. */
  readonly shutdown = new AbortController();
  readonly events = new Subject<DebateSpaceEvent>();
  readonly emit: Emit = this.events.next.bind(this.events);
  readonly storage: Storage;
  readonly keyring: Keyring;
  readonly watch: StorageWatch;

  private constructor(
    readonly options: ResolvedOptions,
    readonly logger: LoggerService,
    /** The secret key at boot. A function may return another one later. */
    readonly bootSecretKey: Secret,
    readonly opened: OpenStorage,
    keys: readonly Secret[],
    /** For logouts that the storage does not accept in time. Absent when the storage itself is memory. */
    readonly memory: Storage | undefined,
  ) {
    setMaxListeners(0, this.shutdown.signal); // one listener for each call that runs
    this.storage = opened.storage;
    this.keyring = new Keyring(keys, applicationKey(options.applicationName));
    this.watch = new StorageWatch(opened, this.emit);
  }

  /**
   * @throws {@link StorageError} when the storage cannot be used
   * @throws {@link DebateSpaceOptionsError} when the options contradict the storage or each other, or when the host's function
   * gives no secret key
   */
  static async open(options: ResolvedOptions, logger: LoggerService): Promise<Application> {
    const secretKey = await firstKey(options.secretKey);
    refuse(sharedKeyProblems(options, secretKey));
    const { storage: engine, worker } = options;
    if (!engine.durable && !worker) {
      const problem = 'is false, but no other process can deliver logouts from the memory of this one';
      refuse([optionProblem('worker', problem, 'give a storage that a process with a worker shares')]);
    }
    const name = applicationKey(options.applicationName);
    const opened = await openNowOrLater(engine, name);
    const keys = keysOf(options, opened);
    if (keys.length === 0) {
      await opened.storage.close();
      refuse([optionProblem('storageKey', 'is missing: the storage encrypts uids with it')]);
    }
    const memory = engine.durable ? new MemoryStorage() : undefined;
    return new Application(options, logger, secretKey, opened, keys, memory);
  }
}

/**
 * The host also starts while the database does not answer: its logouts wait in memory. The command line, a guest of the storage,
 * does not.
 */
async function openNowOrLater(engine: StorageEngine, application: string): Promise<OpenStorage> {
  try {
    return await engine.open(application);
  } catch (error) {
    if (!(error instanceof StorageError) || !error.unreachable || engine.guest) throw error;
    return new LateStorage(engine, application, error);
  }
}

function refuse(problems: readonly OptionProblem[]): void {
  if (problems.length > 0) throw new DebateSpaceOptionsError(problems);
}

async function firstKey(source: SecretSource): Promise<Secret> {
  try {
    return await source.current();
  } catch (error) {
    const problem = error instanceof SecretKeyError ? error.problem : 'was not returned';
    throw new DebateSpaceOptionsError([optionProblem('secretKey', problem)]);
  }
}

/**
 * Finds options that have the value of a key. The API key and the texts of `logout` are sent or logged, and a storage key that
 * equals the secret key would be lost when the secret key is rotated.
 */
function sharedKeyProblems(options: ResolvedOptions, secretKey: Secret): OptionProblem[] {
  const hasKey = (option: string, key: 'apiKey' | 'secretKey') =>
    optionProblem(option, `has the value of ${key}`, 'give it its own');
  const apiKey = options.apiKey.reveal();
  const storageKey = options.storageKey.map((key) => key.reveal());
  const given: [string, unknown][] = [
    ...Object.entries({ ...options, apiKey, storageKey }),
    ...Object.entries(options.logout).map(([name, value]): [string, unknown] => [`logout.${name}`, value]),
  ];
  return [
    ...given
      .filter(([, value]) => [value].flat().includes(secretKey.reveal()))
      .map(([option]) => hasKey(option, 'secretKey')),
    ...(storageKey.includes(apiKey) ? [hasKey('storageKey', 'apiKey')] : []),
  ];
}

/** The storage's own key comes last, so that an application with another key can still read the older rows. */
function keysOf({ storage: engine, storageKey }: ResolvedOptions, { key }: OpenStorage): readonly Secret[] {
  const given = storageKey.map((each) => each.reveal());
  const own = key ?? (engine.durable || given.length > 0 ? undefined : randomUUID());
  return [...new Set(own === undefined ? given : [...given, own])].map((each) => new Secret(each));
}

/** The end of a key with a hash: a hyphen and 16 characters, at least one of them a capital letter. */
const HASHED = /-(?=[\w-]*[A-Z])[\w-]{16}$/;

/**
 * The key by which the rows of an application are found: no two names have the same key. A plain name is its own key, unless it
 * could be the key of another name. It does not depend on the storage keys, so that rows stay visible after a rotation.
 */
export function applicationKey(applicationName: string): string {
  if (/^[\w-]{1,64}$/.test(applicationName) && !HASHED.test(applicationName)) return applicationName;
  const plain = applicationName.replace(/[^\w-]/g, '_').slice(0, 32);
  for (let text = applicationName; ; text += '\0') {
    const key = `${plain}-${createHash('sha256').update(text).digest('base64url').slice(0, 16)}`;
    if (HASHED.test(key)) return key;
  }
}
