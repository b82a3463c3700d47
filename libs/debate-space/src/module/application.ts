import { setMaxListeners } from 'node:events';
import type { LoggerService } from '@nestjs/common';
import { Subject } from 'rxjs';
import type { FormatRow, Storage } from 'durable-jobs';
import { Containment } from '../async/containment.js';
import { DebateSpaceOptionsError } from '../errors.js';
import type { DebateSpaceEvent, Emit } from '../events.js';
import { IS_SECRET_KEY, isStorageKey, optionProblem } from '../options/option-problem.js';
import { SecretKeyError, type SecretSource, type Secret } from '../secrets/secret.js';
import { uidCipher, type UidCipher } from '../secrets/uid-cipher.js';
import { namespaceOf, openStorage } from './own-storage.js';
import type { ResolvedOptions } from './resolve-options.js';

/** What the providers of one application share. */
export class Application {
  /** Its signal breaks off what waits for the service. */
  readonly shutdown = new AbortController();
  readonly uids: UidCipher;

  private constructor(
    readonly options: ResolvedOptions,
    readonly logger: LoggerService,
    readonly events: Subject<DebateSpaceEvent>,
    readonly emit: Emit,
    /** The value of `secretKey` at boot: a function may return another one later. */
    readonly bootSecretKey: Secret,
    readonly storage: Storage,
    /** Of the uids in the storage: the first one encrypts and hashes, all of them decrypt and find. */
    readonly storageKeys: readonly Secret[],
    readonly format: FormatRow,
  ) {
    setMaxListeners(0, this.shutdown.signal); // every call that is under way listens
    this.uids = uidCipher(storageKeys, namespaceOf(options.applicationName));
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
    const containment = new Containment(emit);
    const { storage, keys, format } = await openStorage(options, (work) => {
      containment.run('storage', work);
    });
    return new Application(options, logger, events, emit, secretKey, storage, keys, format);
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
