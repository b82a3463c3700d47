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

/** Why a session ended. `abandoned`: its cookie was cleared; `expired`: it expired; `explicit`: the app reported the end. */
export type SessionEndReason =
  'destroyed' | 'user-removed' | 'user-replaced' | 'cleared' | 'abandoned' | 'expired' | 'explicit';

/** A setup in which ends are missed. */
export type SetupWarningCode =
  | 'uid-not-found'
  | 'uid-never-found'
  | 'cookie-without-uid'
  | 'session-without-store'
  | 'session-of-parent-app'
  | 'clear-not-listed'
  | 'store-not-watchable'
  | 'store-not-answering';

/**
 * Why a logout is sent. `abandoned`: the cookie of the session was cleared; `expired`: the session expired; `requested`: by
 * `logoutUser`; `erasure`: before the user is erased; `explicit`: by `@EndsDebateSession()`.
 */
export type EndReason = SessionEndReason | 'requested' | 'erasure';

/** The common part of all events of a logout. */
export interface LogoutEvent {
  /** The same in all events of one logout, and the `txn` claim of its tokens. */
  readonly id: string;
  /** Personal data: not for logs or metrics. Empty when it cannot be read any more. */
  readonly uid: string;
}

/** The common part of all events of an attempt to deliver a logout. */
export interface AttemptEvent extends LogoutEvent {
  /** How many attempts there were, this one included. */
  readonly attempts: number;
  /** How long this attempt took, in milliseconds. */
  readonly tookMs: number;
}

/** The common part of all events of an erasure: the reference and the mode, and no uid. */
export interface ErasureEvent {
  readonly reference: string;
  readonly mode: ErasureMode;
}

/** The common part of all events of one user's erasure. */
export interface UserErasureEvent extends ErasureEvent {
  /** Keyed hash of the uid, as in the receipt. */
  readonly subject: string;
}

/** An event of the plugin. No event holds a key, a token, a cookie or a session id. */
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
      /** Of a refusal that the command line leaves to the app, which may have other options: the most likely fix. */
      readonly hint?: string;
    })
  | (AttemptEvent & {
      readonly type: 'logout-parked';
      readonly cause: string;
      /** The most likely fix. */
      readonly hint: string;
    })
  /** Logouts are kept in memory only, because the storage does not take them: a crash now would lose them. */
  | { readonly type: 'storage-degraded'; readonly cause: string }
  /** The storage takes logouts again. */
  | { readonly type: 'storage-recovered' }
  /**
   * The storage did not answer when the app booted, and now it answers and cannot be used. Logouts stay in memory, and requests
   * for erasures are rejected. Comes again with each try, once a minute.
   */
  | {
      readonly type: 'storage-refused';
      readonly problem: string;
      /** How to fix it. */
      readonly hint: string;
    }
  /**
   * The storage has lost its rows: logouts and erasures that waited, receipts, history. Once in each process that
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
  /** The erasure of `total` users is stored. */
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
  /** `waiting` users of a reference are not erased yet, `days` whole days after it was requested. */
  | (ErasureEvent & { readonly type: 'erasure-overdue'; readonly waiting: number; readonly days: number })
  | (ErasureEvent & { readonly type: 'erasure-paused' | 'erasure-resumed' })
  /** `count` users of a reference will not be erased: nothing was sent for them. */
  | (ErasureEvent & { readonly type: 'erasure-canceled'; readonly count: number })
  /** Every user of the reference has a final outcome. */
  | (ErasureEvent & {
      readonly type: 'erasure-finished';
      readonly total: number;
      readonly done: number;
      readonly notFound: number;
      readonly vetoed: number;
      readonly canceled: number;
    })
  /** The first erasure was requested, and the storage is memory. */
  | { readonly type: 'erasures-in-memory' }
  /** `count` users were not erased when the app shut down, and are forgotten: the storage is memory. */
  | { readonly type: 'erasures-dropped'; readonly count: number }
  /** The service erases no user at the moment; the erasures wait. */
  | { readonly type: 'erasure-service-down'; readonly cause: string }
  | { readonly type: 'erasure-service-up' }
  /** The service requested a pause with `Retry-After`, in milliseconds, at most an hour. 429: fewer requests; 503: none. */
  | { readonly type: 'service-pause-requested'; readonly status: number; readonly pauseMs: number }
  /** A maintenance page or a firewall, for example, answers at the address of the logout route; logouts wait. */
  | {
      readonly type: 'logout-route-unexpected';
      readonly address: string;
      /** Such as `302` or `403 with a web page`. */
      readonly cause: string;
      /** The most likely fix, if it lasts. */
      readonly hint: string;
    }
  | { readonly type: 'service-down'; readonly cause: string }
  | { readonly type: 'service-up' }
  /** Logouts were not delivered before the app shut down. */
  | {
      readonly type: 'shutdown-incomplete';
      /** How many, the lost ones included. */
      readonly pending: number;
      /** How many of them no storage has confirmed: they end with this process. The others wait for the next start. */
      readonly lost: number;
    }
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
  /** A function of the host, or of this plugin, failed and was contained. */
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
