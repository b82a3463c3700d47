import type { EndReason as SessionEndReason, SetupWarningCode } from './session-end/session-end.js';

/**
 * `anonymize` erases the personal data and keeps the contributions (service-interface.md, section 4.2); `delete` removes
 * the user with all contributions (section 4.3). Neither can be undone.
 */
export type ErasureMode = 'anonymize' | 'delete';

/**
 * `not-found`: the service did not know the uid. `canceled`: given up after an attempt that may have been carried out;
 * what was canceled before anything was sent has no receipt.
 */
export type ErasureOutcome = 'erased' | 'not-found' | 'vetoed' | 'canceled';

/**
 * Why a logout is sent. `abandoned`: the cookie of the session was cleared; `expired`: the session expired; `requested`: by
 * `logoutUser`; `erasure`: before the user is erased; `explicit`: by `@EndsDebateSession()`.
 */
export type EndReason = SessionEndReason | 'requested' | 'erasure';

/** What every event of a logout has. */
export interface LogoutEvent {
  /** The same in all events of one logout, and the `txn` claim of its tokens. */
  readonly id: string;
  /** Personal data: not for logs or metrics. Empty when it cannot be read any more. */
  readonly uid: string;
}

/** What every event of an attempt to deliver a logout has. */
export interface AttemptEvent extends LogoutEvent {
  /** How many attempts there were, this one included. */
  readonly attempts: number;
  /** How long this attempt took, in milliseconds. */
  readonly tookMs: number;
}

/** What every event of an erasure has: the reference and the mode, and no uid. */
export interface ErasureEvent {
  readonly reference: string;
  readonly mode: ErasureMode;
}

/** What every event of one user's erasure has. */
export interface UserErasureEvent extends ErasureEvent {
  /** Keyed hash of the uid, as in the receipt. */
  readonly uidHash: string;
}

/** What happened. No event holds a key, a token, a cookie or a session id. */
export type DebateSpaceEvent =
  | (LogoutEvent & { readonly type: 'session-ended'; readonly reason: EndReason })
  | (AttemptEvent & {
      readonly type: 'logout-delivered';
      /** From the end of the session to the service's answer. */
      readonly delayMs: number;
    })
  | (AttemptEvent & {
      readonly type: 'logout-retrying';
      /** The answer's status, or why there was none. */
      readonly cause: string;
      /** Until the next attempt, at the earliest; while the service is down, one logout at a time is tried. */
      readonly delayMs: number;
    })
  | (AttemptEvent & {
      readonly type: 'logout-parked';
      readonly cause: string;
      /** What is most likely to fix it. */
      readonly hint: string;
    })
  /** Logouts are kept in memory only, because the storage does not take them: a crash now would lose them. */
  | { readonly type: 'storage-degraded'; readonly cause: string }
  /** The storage takes logouts again. */
  | { readonly type: 'storage-recovered' }
  /**
   * What the storage had accepted is gone: logouts and erasures that waited, receipts, history. Once in each process that
   * notices it; {@link DebateSpaceHealth} reports `degraded` until the process restarts.
   */
  | {
      readonly type: 'storage-emptied';
      /** A file, or host and database. */
      readonly place: string | undefined;
    }
  /**
   * No storage key vouches for a record: it was written with another one, or somebody changed it in the database. It is
   * neither executed nor believed. A reference and a receipt are reported once in each process.
   */
  | {
      readonly type: 'record-unverified';
      readonly record: 'reference' | 'receipt' | 'live session';
      /** Of a reference or a receipt. */
      readonly reference?: string;
    }
  /** So many users are to be erased; they are durable. */
  | (ErasureEvent & {
      readonly type: 'erasure-requested';
      readonly requestedBy?: string | undefined;
      readonly total: number;
    })
  | (UserErasureEvent & {
      readonly type: 'erasure-done';
      readonly outcome: ErasureOutcome;
      readonly attempts: number;
      /** The HTTP status of the service's answer. */
      readonly status?: number | undefined;
      /** Whether the service took the logout that goes first. */
      readonly loggedOut: boolean;
    })
  /** `erasure.beforeErase` forbade it. */
  | (UserErasureEvent & { readonly type: 'erasure-vetoed'; readonly reason: string })
  | (UserErasureEvent & {
      readonly type: 'erasure-retrying';
      readonly attempts: number;
      readonly cause: string;
      readonly delayMs: number;
    })
  /** Not tried any more until somebody retries it. */
  | (UserErasureEvent & {
      readonly type: 'erasure-parked';
      readonly attempts: number;
      readonly cause: string;
      readonly hint: string;
    })
  /** So many users of a reference are not erased yet, so many whole days after it was requested. */
  | (ErasureEvent & { readonly type: 'erasure-overdue'; readonly waiting: number; readonly days: number })
  | (ErasureEvent & { readonly type: 'erasure-paused' | 'erasure-resumed' })
  /** So many of a reference are given up; nothing was sent of them. */
  | (ErasureEvent & { readonly type: 'erasure-canceled'; readonly count: number })
  /** Nothing of the reference is left to do. */
  | (ErasureEvent & {
      readonly type: 'erasure-finished';
      readonly total: number;
      readonly done: number;
      readonly notFound: number;
      readonly vetoed: number;
      readonly canceled: number;
    })
  /** The first erasure was requested, and the outbox keeps it in memory only. */
  | { readonly type: 'erasures-in-memory' }
  /** So many users were not erased when the app shut down, and are forgotten: the outbox kept them in memory. */
  | { readonly type: 'erasures-dropped'; readonly count: number }
  /** The service does not erase anybody at the moment; they wait. */
  | { readonly type: 'erasure-service-down'; readonly cause: string }
  | { readonly type: 'erasure-service-up' }
  /** The service requested a pause with `Retry-After`, in milliseconds, at most an hour. 429: fewer requests; 503: none. */
  | { readonly type: 'service-pause-requested'; readonly status: number; readonly pauseMs: number }
  /** Something else than the logout route answers at its address, such as a maintenance page or a firewall; logouts wait. */
  | {
      readonly type: 'logout-route-unexpected';
      readonly address: string;
      /** Such as `302` or `403 with a web page`. */
      readonly cause: string;
      /** What is most likely to fix it, if it lasts. */
      readonly hint: string;
    }
  | { readonly type: 'service-down'; readonly cause: string }
  | { readonly type: 'service-up' }
  /** Left when the app shut down; `lost` when the outbox keeps nothing beyond the process. */
  | { readonly type: 'shutdown-incomplete'; readonly pending: number; readonly lost: boolean }
  | { readonly type: 'session-store-found'; readonly store: string }
  /** The plugin misses ends because of how it is set up; once for each `code`. `message` has keys of sessions, no values. */
  | {
      readonly type: 'setup-warning';
      /** docs/troubleshooting.md has an entry for each. */
      readonly code: SetupWarningCode;
      readonly message: string;
      /** The option to set. */
      readonly hint: string;
    }
  /** Something of the host or of ours failed and was contained. */
  | {
      readonly type: 'fault';
      readonly where: string;
      /** The error's name. */
      readonly error: string;
      /** Of a `StorageError`: what the storage said. */
      readonly problem?: string;
    };

/** Takes an event; never throws. */
export type Emit = (event: DebateSpaceEvent) => void;
