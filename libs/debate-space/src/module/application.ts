import { setMaxListeners } from 'node:events';
import { Subject } from 'rxjs';
import { Containment } from '../async/containment.js';
import { DebateSpaceOptionsError } from '../errors.js';
import type { DebateSpaceEvent, Emit } from '../events.js';
import { IS_SECRET_KEY, isStorageKey } from '../options/storage-key-problems.js';
import { KeyProblem } from '../secrets/asked-key.js';
import type { KeySource, Secret } from '../secrets/secret.js';
import { uidCipher, type UidCipher } from '../secrets/uid-cipher.js';
import type { DebateSpaceStorage } from '../storage/storage.js';
import { namespaceOf, openStorage } from './open-storage.js';
import type { ResolvedOptions } from './resolve-options.js';

/** What all providers of one application share: its options, its open storage, its keys and its events. */
export class Application {
  readonly uids: UidCipher;
  readonly #shutdown = new AbortController();

  private constructor(
    readonly options: ResolvedOptions,
    readonly storage: DebateSpaceStorage,
    /** Of the uids in the storage: the first one encrypts and hashes, all of them decrypt and find. */
    readonly storageKeys: readonly Secret[],
    /** The first value of `secretKey`: what hashes stays the same, even if the key is rotated meanwhile. */
    readonly hashKey: Secret,
    readonly events: Subject<DebateSpaceEvent>,
  ) {
    this.uids = uidCipher(storageKeys, namespaceOf(options.applicationName));
    setMaxListeners(0, this.shutdownSignal); // every call that is under way listens
  }

  /**
   * @throws {@link StorageError} when the storage cannot be used
   * @throws {@link DebateSpaceOptionsError} when the options do not go with the storage, or there is no secret key
   */
  static async open(options: ResolvedOptions): Promise<Application> {
    const hashKey = await firstKey(options.secretKey);
    if (isStorageKey(options.storageKey, hashKey)) throw new DebateSpaceOptionsError([IS_SECRET_KEY]);
    const events = new Subject<DebateSpaceEvent>();
    const containment = new Containment(events.next.bind(events));
    const { storage, keys } = await openStorage(options, (work) => {
      containment.run('storage', work);
    });
    return new Application(options, storage, keys, hashKey, events);
  }

  readonly emit: Emit = (event) => {
    this.events.next(event);
  };

  /** Aborted when the app shuts down. */
  get shutdownSignal(): AbortSignal {
    return this.#shutdown.signal;
  }

  /** Ends what waits for the service. */
  abort(): void {
    this.#shutdown.abort();
  }
}

async function firstKey(source: KeySource): Promise<Secret> {
  try {
    return await source.current();
  } catch (error) {
    throw new DebateSpaceOptionsError([
      error instanceof KeyProblem ? error.message : 'secretKey cannot be had',
    ]);
  }
}
