import { SessionEndWatcher } from '../session-end/watch-session-ends.js';
import type { FoundSession } from '../session-end/session-end.js';
import { Containment, faultsTo } from '../async/containment.js';
import { withTimeout } from '../async/with-timeout.js';
import { LiveSessionTable } from '../live-sessions/live-session-table.js';
import { keepSweeping } from '../live-sessions/session-sweep.js';
import { LogoutRecorder, type RecorderParts } from '../logout/logout-recorder.js';
import type { Application } from './application.js';

/** How long the shutdown waits for a running sweep. Another sweep takes its sessions when their leases end. */
const STOP_TIMEOUT_MS = 1_000;

/** Watches the sessions of the host, and with `session.expiry` the live ones of all instances. */
export class SessionWatch {
  readonly watcher: SessionEndWatcher;
  readonly recorder: LogoutRecorder;
  readonly #liveSessions?: LiveSessionTable;
  readonly #shutdown = new AbortController();
  readonly #sweep?: () => Promise<void>;
  #sweeping: Promise<void> | undefined;

  constructor(application: Application, { logouts, lanes }: Pick<RecorderParts, 'logouts' | 'lanes'>) {
    const { options, emit, storage, keyring, watch } = application;
    const { expiry, ...session } = options.session;
    const { storageTimeoutMs } = options.logout;
    const { signal } = this.#shutdown;
    const containment = new Containment(faultsTo(emit));
    const find = (sid: string): Promise<readonly FoundSession[]> => this.watcher.find(sid);
    const isSwept = expiry !== false && options.logout.mode === 'direct';
    const liveSessions = isSwept ? new LiveSessionTable(storage, keyring, find, containment) : undefined;
    this.#liveSessions = liveSessions;
    const recorder = new LogoutRecorder({ logouts, lanes, liveSessions, watch, storageTimeoutMs, emit });
    this.recorder = recorder;
    if (liveSessions && isSwept) {
      const { sweepMs } = expiry;
      const parts = { storage, sessions: liveSessions, recorder, containment, emit, find, sweepMs, signal };
      this.#sweep = () => keepSweeping(parts);
    }
    this.watcher = new SessionEndWatcher({
      ...session,
      answerTimeoutMs: storageTimeoutMs,
      liveSessions,
      onSessionEnd: (end, sid) => recorder.record(end, sid),
      onFault: (where, error) => {
        containment.report(where, error);
      },
      onWarning: ({ code, message, hint }) => {
        emit({ type: 'setup-warning', code, message, hint });
      },
      onStore: (store) => {
        emit({ type: 'session-store-found', store });
      },
    });
  }

  /** With `session.expiry`, looks for expired sessions from now on. */
  startSweep(): void {
    if (!this.#shutdown.signal.aborted) this.#sweeping ??= this.#sweep?.();
  }

  /** Decides now about every session that may have ended. */
  async close(): Promise<void> {
    this.#shutdown.abort();
    const swept = withTimeout(this.#sweeping ?? Promise.resolve(), STOP_TIMEOUT_MS, undefined);
    await this.watcher.close();
    await this.#liveSessions?.idle();
    await swept;
  }
}
