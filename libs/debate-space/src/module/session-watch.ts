import { SessionEndWatcher } from '../session-end/watch-session-ends.js';
import type { FoundSession } from '../session-end/session-end.js';
import { Containment } from '../async/containment.js';
import { withTimeout } from '../async/with-timeout.js';
import { LiveSessionTable } from '../live-sessions/live-session-table.js';
import { keepSweeping } from '../live-sessions/session-sweep.js';
import type { LogoutRecorder } from '../logout/logout-recorder.js';
import type { Application } from './application.js';

/** A look at expired sessions that is under way may end; what is left has been claimed, and will be again. */
const STOP_WITHIN_MS = 1_000;

/** Watches the sessions of the host, and with `session.expiry` the live ones of all instances. */
export class SessionWatch {
  readonly watcher: SessionEndWatcher;
  readonly #liveSessions?: LiveSessionTable;
  readonly #shutdown = new AbortController();
  readonly #sweep?: () => Promise<void>;
  #sweeping: Promise<void> | undefined;

  constructor({ options, emit, storage, keyring }: Application, recorder: LogoutRecorder) {
    const { expiry, ...session } = options.session;
    const { signal } = this.#shutdown;
    const containment = new Containment(emit);
    const find = (sid: string): Promise<readonly FoundSession[]> => this.watcher.find(sid);
    const sweepMs = expiry === false || options.logout.mode !== 'direct' ? undefined : expiry.sweepMs;
    if (sweepMs !== undefined) {
      const sessions = new LiveSessionTable(storage, keyring, find, containment);
      this.#liveSessions = sessions;
      this.#sweep = () =>
        keepSweeping({ storage, sessions, recorder, containment, emit, find, sweepMs, signal });
    }
    this.watcher = new SessionEndWatcher({
      ...session,
      answerTimeoutMs: options.logout.storageTimeoutMs,
      liveSessions: this.#liveSessions,
      onSessionEnd: (end, sid) => {
        const sessions = sid === undefined ? undefined : this.#liveSessions;
        if (!sessions || sid === undefined) return recorder.record(end);
        return recorder.record(end, (logout) => sessions.end(sid, end.uid, logout));
      },
      onFault: (where, error) => {
        containment.report(where, error);
      },
      onWarning: ({ code, message, hint }) => {
        emit({ type: 'setup-warning', code, message: ofPlugin(message), hint: ofPlugin(hint) });
      },
      onStore: (store) => {
        emit({ type: 'session-store-found', store });
      },
    });
  }

  /** Looks for sessions that have expired from now on, if the host wants that. */
  start(): void {
    this.#sweeping ??= this.#sweep?.();
  }

  /** Has every open verdict fall now. */
  async close(): Promise<void> {
    this.#shutdown.abort();
    const swept = withTimeout(this.#sweeping ?? Promise.resolve(), STOP_WITHIN_MS, undefined);
    await this.watcher.close();
    await this.#liveSessions?.idle();
    await swept;
  }
}

/** The options that the library names are those of `session` here. */
function ofPlugin(text: string): string {
  return text.replaceAll(/\bthe option (uid|store|cookies)\b/g, 'the option session.$1');
}
