import { setMaxListeners } from 'node:events';
import type { LoggerService } from '@nestjs/common';
import { Subject } from 'rxjs';
import { DebateSpaceOptionsError } from '../errors.js';
import type { DebateSpaceEvent, Emit } from '../events.js';
import { IS_SECRET_KEY, isStorageKey, optionProblem } from '../options/option-problem.js';
import { SecretKeyError, type SecretSource, type Secret } from '../secrets/secret.js';
import { uidCipher, type UidCipher } from '../secrets/uid-cipher.js';
import { memoryStorage } from '../storage/memory-storage.js';
import type { JobKind, Storage } from '../storage/storage.js';
import { StorageWatch } from '../storage/storage-watch.js';
import { applicationKey, openStorage, type OpenedStorage } from './open-storage.js';
import type { ResolvedOptions } from './resolve-options.js';

/** What the providers of one application share. */
export class Application {
  /** Its signal breaks off what waits for the service. */
  readonly shutdown = new AbortController();
  readonly uids: UidCipher;
  readonly watch: StorageWatch;
  /** Names the kind of jobs that this process has just added: there is work. */
  readonly added = new Subject<JobKind>();

  private constructor(
    readonly options: ResolvedOptions,
    readonly logger: LoggerService,
    readonly events: Subject<DebateSpaceEvent>,
    readonly emit: Emit,
    /** The value of `secretKey` at boot: a function may return another one later. */
    readonly bootSecretKey: Secret,
    readonly opened: OpenedStorage,
    /** Takes the logouts that the storage does not take in time. Absent when the storage is memory itself. */
    readonly memory: Storage | undefined,
  ) {
    setMaxListeners(0, this.shutdown.signal); // every call that is under way listens
    this.uids = uidCipher(opened.keys, applicationKey(options.applicationName));
    this.watch = new StorageWatch(opened.storage, opened.place, emit);
  }

  get storage(): Storage {
    return this.opened.storage;
  }

  /**
   * @throws {@link StorageError} when the storage cannot be used
   * @throws {@link DebateSpaceOptionsError} when the options do not go with the storage, or there is no secret key
   */
  static async open(options: ResolvedOptions, logger: LoggerService): Promise<Application> {
    const secretKey = await firstKey(options.secretKey);
    if (isStorageKey(options.storageKey, secretKey)) throw new DebateSpaceOptionsError([IS_SECRET_KEY]);
    const events = new Subject<DebateSpaceEvent>();
    const emit = events.next.bind(events);
    const opened = await openStorage(options);
    const name = applicationKey(options.applicationName);
    const memory = options.storage.durable ? (await memoryStorage().open(name)).storage : undefined;
    return new Application(options, logger, events, emit, secretKey, opened, memory);
  }
}

async function firstKey(source: SecretSource): Promise<Secret> {
  try {
    return await source.current();
  } catch (error) {
    throw new DebateSpaceOptionsError([
      optionProblem('secretKey', error instanceof SecretKeyError ? error.problem : 'cannot be had'),
    ]);
  }
}
