import { randomUUID } from 'node:crypto';
import { ENDED_SESSION_MS, type DueSession, type LiveSession } from './storage.js';

interface SessionRow {
  readonly session: LiveSession;
  readonly expiresAt: number;
  dueAt: number;
  token: string | undefined;
  endedAt: number | undefined;
}

/** The live sessions of an application, and those that ended a moment ago. */
export class MemorySessions {
  readonly #rows = new Map<string, SessionRow>();

  register(session: LiveSession, expiresAt: number, dueAt: number, isFound: boolean, now: number): boolean {
    if (!isFound && this.#hasEnded(session.id, now)) return false;
    this.#rows.set(session.id, { session, expiresAt, dueAt, token: undefined, endedAt: undefined });
    return true;
  }

  /** @param isRemembered whether a second end is refused for a while */
  end(
    session: LiveSession,
    token: string | undefined,
    aliveMs: number,
    isRemembered: boolean,
    now: number,
  ): boolean {
    const { id } = session;
    if (this.#hasEnded(id, now, aliveMs)) return false;
    if (token !== undefined && this.#rows.get(id)?.token !== token) return false;
    const ended = { session, expiresAt: 0, dueAt: Infinity, token: undefined, endedAt: now };
    if (isRemembered) this.#rows.set(id, ended);
    else this.#rows.delete(id);
    return true;
  }

  claimDue(limit: number, leaseMs: number, now: number): readonly DueSession[] {
    const due = [...this.#rows.values()].filter(({ dueAt }) => dueAt <= now);
    due.sort((one, other) => one.dueAt - other.dueAt);
    return due.slice(0, limit).map((row) => {
      const token = randomUUID();
      Object.assign(row, { token, dueAt: now + leaseMs });
      return { ...row.session, token, expiresAt: row.expiresAt };
    });
  }

  postpone({ id, token }: DueSession, dueAt: number): void {
    const row = this.#rows.get(id);
    if (row?.token === token) Object.assign(row, { token: undefined, dueAt });
  }

  prune(now: number): void {
    for (const [id, { endedAt = Infinity }] of this.#rows)
      if (endedAt <= now - ENDED_SESSION_MS) this.#rows.delete(id);
  }

  #hasEnded(id: string, now: number, withinMs = ENDED_SESSION_MS): boolean {
    return (this.#rows.get(id)?.endedAt ?? -Infinity) > now - Math.min(withinMs, ENDED_SESSION_MS);
  }
}
