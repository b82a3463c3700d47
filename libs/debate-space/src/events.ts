/**
 * `anonymize` erases the personal data and keeps the contributions (service-interface.md, section 4.2); `delete` removes
 * the user with all contributions (section 4.3). Neither can be undone.
 */
export type ErasureMode = 'anonymize' | 'delete';

/**
 * The final outcome of one user's erasure, as in its receipt.
 *
 * - `not-found`: the service does not have the user.
 * - `vetoed`: `erasure.beforeErase` forbade it.
 * - `canceled`: canceled after an attempt of unknown outcome. An erasure that was canceled before any attempt has no receipt.
 */
export type ErasureOutcome = 'erased' | 'not-found' | 'vetoed' | 'canceled';

/** Why a session ended. `abandoned`: the app cleared its cookie; `explicit`: the app reported it by `@EndsDebateSession()`. */
export type SessionEndReason =
  'destroyed' | 'user-removed' | 'user-replaced' | 'cleared' | 'abandoned' | 'expired' | 'explicit';

/** A mistake in the setup, because of which the plugin misses logouts. */
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
 * Why a logout is sent: because a session ended, because the app called `logoutUser` (`requested`), or because the user will be
 * erased (`erasure`).
 */
export type EndReason = SessionEndReason | 'requested' | 'erasure';

/** The properties that all events of a logout have. */
export interface LogoutEvent {
  /** The same in all events of one logout, and in the `txn` claim of its tokens. */
  readonly id: string;
  /** Personal data: keep it out of logs and metrics. Empty when no storage key can decrypt it any more. */
  readonly uid: string;
}

/** The properties that all events of a delivery attempt have. */
export interface AttemptEvent extends LogoutEvent {
  /** How many attempts there were, including this one. */
  readonly attempts: number;
  /** How long this attempt took, in milliseconds. */
  readonly tookMs: number;
}

/** The properties that all events of an erasure have. No event of an erasure has a uid. */
export interface ErasureEvent {
  readonly reference: string;
  readonly mode: ErasureMode;
}

/** The properties that all events of one user's erasure have. */
export interface UserErasureEvent extends ErasureEvent {
  /** Keyed hash of the uid, as in the receipt. */
  readonly subject: string;
}

/** An event of the plugin. No event holds a key, a token, a cookie or a session id. */
export type DebateSpaceEvent =
  | (LogoutEvent & { readonly type: 'session-ended'; readonly reason: EndReason })
  | (AttemptEvent & {
      readonly type: 'logout-delivered';
      /** From the end of the session to the service's answer, in milliseconds. */
      readonly delayMs: number;
    })
  | (AttemptEvent & {
      readonly type: 'logout-retrying';
      /** The status of the answer, or why no answer came, such as `503`, `ECONNREFUSED` or `TIMEOUT`. */
      readonly cause: string;
      /** The shortest time until the next attempt, in milliseconds. While the service is down, one logout at a time is tried. */
      readonly delayMs: number;
      /** The most likely fix. Only from the command line, which leaves parking to the app and its options. */
      readonly hint?: string;
    })
  | (AttemptEvent & {
      readonly type: 'logout-parked';
      readonly cause: string;
      /** The most likely fix. */
      readonly hint: string;
    })
  /** The storage does not accept logouts, so they are kept in memory: a crash now would lose them. */
  | { readonly type: 'storage-degraded'; readonly cause: string }
  /** The storage accepts logouts again. */
  | { readonly type: 'storage-recovered' }
  /**
   * The storage did not answer at boot; now it answers, but cannot be used. Logouts stay in memory, and requests for erasures
   * are rejected. Emitted again after each try, once a minute.
   */
  | {
      readonly type: 'storage-refused';
      readonly problem: string;
      /** How to fix it. */
      readonly hint: string;
    }
  /**
   * The storage has lost its rows: logouts and erasures that waited, receipts, history. Emitted once in each process that
   * notices it; `DebateSpaceHealth` reports `degraded` until the process restarts.
   */
  | {
      readonly type: 'storage-emptied';
      /** A file, or a host and a database. */
      readonly place: string | undefined;
    }
  /**
   * A record does not fit any storage key: it was written with another key, or somebody changed it in the database. The plugin
   * does not act on it. Emitted once in each process for each reference and receipt.
   */
  | {
      readonly type: 'record-unverified';
      readonly record: 'reference' | 'receipt' | 'live session';
      /** For a reference or a receipt only. */
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
      /** Whether the service accepted the logout that is sent before the erasure. */
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
  /** Not tried again until somebody retries it. */
  | (UserErasureEvent & {
      readonly type: 'erasure-parked';
      readonly attempts: number;
      readonly cause: string;
      readonly hint: string;
    })
  /** `waiting` users of a reference are not erased, `days` whole days after the request. */
  | (ErasureEvent & { readonly type: 'erasure-overdue'; readonly waiting: number; readonly days: number })
  | (ErasureEvent & { readonly type: 'erasure-paused' | 'erasure-resumed' })
  /** `count` users of a reference will not be erased, and nothing was sent for them. */
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
  /** The first erasure was requested, but the storage is memory. */
  | { readonly type: 'erasures-in-memory' }
  /** `count` users were not erased before the shutdown, and their erasures are lost, because the storage is memory. */
  | { readonly type: 'erasures-dropped'; readonly count: number }
  /** The service does not erase users at the moment; their erasures wait. */
  | { readonly type: 'erasure-service-down'; readonly cause: string }
  /** The service erases users again. */
  | { readonly type: 'erasure-service-up' }
  /** The service requested a pause with `Retry-After`, in milliseconds, at most an hour: fewer requests (429) or none (503). */
  | { readonly type: 'service-pause-requested'; readonly status: number; readonly pauseMs: number }
  /** Something else than the service, such as a firewall, answers at the address of the logout route. Logouts wait. */
  | {
      readonly type: 'logout-route-unexpected';
      readonly address: string;
      /** Such as `302` or `403 with a web page`. */
      readonly cause: string;
      /** The most likely fix if it persists. */
      readonly hint: string;
    }
  /** The service does not accept logouts at the moment; they wait. */
  | { readonly type: 'service-down'; readonly cause: string }
  /** The service accepts logouts again. */
  | { readonly type: 'service-up' }
  /** Logouts were not delivered before the app shut down. */
  | {
      readonly type: 'shutdown-incomplete';
      /** How many, including the lost ones. */
      readonly pending: number;
      /** How many of them are not in a durable storage: they end with this process. The others wait for the next start. */
      readonly lost: number;
    }
  /** The plugin watches a session store; `store` is the name of its class. */
  | { readonly type: 'session-store-found'; readonly store: string }
  /** The plugin misses logouts because of a mistake in the setup. Once for each `code`. `message` shows no values of sessions. */
  | {
      readonly type: 'setup-warning';
      /** docs/troubleshooting.md has an entry for each. */
      readonly code: SetupWarningCode;
      readonly message: string;
      /** The option to set. */
      readonly hint: string;
    }
  /** A function of the host or of this plugin failed, and the failure was contained. */
  | {
      readonly type: 'fault';
      readonly where: string;
      /** The name of the error. */
      readonly error: string;
      /** For a `StorageError`: its `problem`. */
      readonly problem?: string;
    };

/** Emits an event. Never throws. */
export type Emit = (event: DebateSpaceEvent) => void;
