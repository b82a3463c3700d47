import { DebateSpaceErasures } from '../../../libs/debate-space/src/api/debate-space-erasures.js';
import { addList, addUser } from '../../../libs/debate-space/src/erasure/erasure-requests.js';
import { ErasureAttempt } from '../../../libs/debate-space/src/erasure/erasure-attempt.js';
import type {
  BeforeErase,
  ErasureReceipt,
  ErasureStatus,
} from '../../../libs/debate-space/src/erasure/erasure.js';
import { ErasureRepository } from '../../../libs/debate-space/src/erasure/erasure-repository.js';
import { ErasureWorker } from '../../../libs/debate-space/src/erasure/erasure-worker.js';
import type { DebateSpaceEvent, ErasureMode } from '../../../libs/debate-space/src/events.js';
import { LogoutRepository } from '../../../libs/debate-space/src/logout/logout-repository.js';
import { Logouts } from '../../../libs/debate-space/src/logout/logouts.js';
import { RateLimiter } from '../../../libs/debate-space/src/service/rate-limiter.js';
import { Secret } from '../../../libs/debate-space/src/secrets/secret.js';
import { Keyring } from '../../../libs/debate-space/src/secrets/keyring.js';
import type { DebateSpaceUser } from '../../../libs/debate-space/src/service/calls/listed-users.js';
import { LEASE_MS, type Storage } from '../../../libs/debate-space/src/storage/storage.js';

export const DAY_MS = 86_400_000;
export const GIVE_UP_AFTER_MS = 28 * DAY_MS;

/** What the service answers to an erasure: a status, or a failure. */
export type ErasureAnswer = () => number | Promise<number>;

/** The erasures of one process, on a storage that it may share with others, and a service whose answers are the test's. */
export class ErasureRoom {
  readonly events: DebateSpaceEvent[] = [];
  /** Requests that the service has received. */
  readonly sent: string[] = [];
  /** The next answers of the service; 200 when there is none. */
  readonly answers: ErasureAnswer[] = [];
  beforeErase: BeforeErase = () => undefined;
  /** Called between the host's answer and the request. */
  beforeSending: () => Promise<unknown> = () => Promise.resolve();
  readonly keyring: Keyring;
  readonly repository: ErasureRepository;
  readonly erasures: DebateSpaceErasures;
  readonly worker: ErasureWorker;

  constructor(
    readonly storage: Storage,
    storageKeys: readonly string[] = ['a key'],
    application = 'app',
    isGuest = false,
  ) {
    const emit = (event: DebateSpaceEvent): void => void this.events.push(event);
    this.keyring = new Keyring(
      storageKeys.map((key) => new Secret(key)),
      application,
    );
    this.repository = new ErasureRepository(storage, this.keyring, emit, 7 * DAY_MS);
    const shutdownSignal = new AbortController().signal;
    this.erasures = new DebateSpaceErasures({
      ...{ repository: this.repository, users: { walk: () => each<DebateSpaceUser>([]) } },
      ...{ pace: new RateLimiter(false, storage), shutdownSignal, emit },
    });
    const users = {
      prepareErasure: () => Promise.resolve(undefined),
      list: () => Promise.resolve({ page: { users: [], page: 1 }, follows: false }),
      erase: async (uid: string, mode: ErasureMode): Promise<number> => {
        this.sent.push(`${mode} ${uid}`);
        const answer = this.answers.shift();
        return answer ? answer() : 200;
      },
    };
    const logouts = {
      send: async () => {
        await this.beforeSending();
        return { status: 200 };
      },
    };
    const beforeErase: BeforeErase = (erasure) => this.beforeErase(erasure);
    const attempt = new ErasureAttempt(this.repository, users, logouts, beforeErase, shutdownSignal, emit);
    const options = {
      concurrency: 4,
      giveUpAfterMs: GIVE_UP_AFTER_MS,
      isGuest,
      overdueAgesMs: [7 * DAY_MS, 21 * DAY_MS],
    };
    const all = new Logouts(new LogoutRepository(storage, this.keyring, DAY_MS), undefined);
    this.worker = new ErasureWorker(storage, options, emit, this.repository, attempt, { leftMs: 0 }, all);
  }

  /** Requests single users. */
  async request(reference: string, uids: readonly string[], mode: ErasureMode = 'delete'): Promise<void> {
    const request = { reference, mode, requestedBy: `for ${reference}` };
    for (const uid of uids) await addUser(this.repository, this.storage, request, uid);
  }

  requestList(reference: string, uids: Iterable<string> | AsyncIterable<string>): Promise<boolean> {
    return addList(this.repository, this.storage, { reference, mode: 'delete' }, each(uids));
  }

  /** Executes what is due, one after the other. @returns how many were claimed */
  async work(limit = 100, leaseMs = LEASE_MS): Promise<number> {
    const { claims } = await this.storage.claim('erasure', limit, leaseMs);
    for (const claim of claims) await this.worker.execute(claim);
    return claims.length;
  }

  status(reference: string): Promise<ErasureStatus> {
    return this.repository.status(reference);
  }

  async receipts(reference: string): Promise<readonly ErasureReceipt[]> {
    const found: ErasureReceipt[] = [];
    for await (const receipt of this.repository.receipts(reference)) found.push(receipt);
    return found;
  }

  types(): readonly string[] {
    return this.events.map(({ type }) => type);
  }
}

async function* each<T>(items: Iterable<T> | AsyncIterable<T>): AsyncGenerator<T> {
  yield* items;
}
