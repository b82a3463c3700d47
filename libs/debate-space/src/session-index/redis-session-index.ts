import { randomUUID } from 'node:crypto';
import { RedisScript, type SendCommand } from '../redis-script.js';
import { CLAIM, PUT, REMOVE } from './redis-session-scripts.js';
import {
  FORGOTTEN_AFTER_MS,
  type IndexedSession,
  type SessionIndex,
  type SessionIndexFactory,
  type SessionRemoval,
} from './session-index.js';

export interface RedisSessionIndexOptions {
  /** The host's own client; see {@link SendCommand}. What it rejects with, the index rejects with. */
  readonly sendCommand: SendCommand;
  /** How the names of the keys begin, `debate-space:sessions` unless told. */
  readonly prefix?: string;
}

/** Longer than any client goes on sending what was not answered. */
const REMEMBER_REMOVAL_MS = 5 * 60 * 1000;
/** The last moment that JavaScript knows: what never runs out runs out then. */
const LAST_MOMENT = 8.64e15;

/** One index for all instances of an application, on the host's Redis: 5 or later, Valkey too, one node or a cluster. */
export function redisSessionIndex(options: RedisSessionIndexOptions): SessionIndexFactory {
  const { sendCommand, prefix = 'debate-space:sessions' } = options;
  return { open: (namespace) => new RedisSessionIndex(sendCommand, prefix, namespace) };
}

/**
 * Redis's clock is the judge, so that instances whose clocks differ agree. It is told how long a session has left, not
 * when it ends: that is true whatever the host's clock says, and is how stores on Redis reckon as well.
 */
class RedisSessionIndex implements SessionIndex {
  readonly durable = true;
  readonly #send: SendCommand;
  readonly #tag: string;
  readonly #keys: readonly string[];
  readonly #put = new RedisScript(PUT);
  readonly #remove = new RedisScript(REMOVE);
  readonly #claim = new RedisScript(CLAIM);

  constructor(send: SendCommand, prefix: string, namespace: string) {
    this.#send = send;
    // The braces keep the keys of an application on one node of a cluster; encoded, no name closes them early.
    this.#tag = `{${prefix}:${encodeURIComponent(namespace)}}`;
    this.#keys = ['sessions', 'due', 'users'].map((name) => `${this.#tag}:${name}`);
  }

  async put(session: IndexedSession): Promise<void> {
    await this.#note(session, 'always');
  }

  async renew(session: IndexedSession): Promise<void> {
    await this.#note(session, 'if there');
  }

  async remove(hash: string, uidHash: string): Promise<SessionRemoval> {
    const keys = [...this.#keys, `${this.#tag}:removed:${hash}`];
    const args = [hash, uidHash, randomUUID(), String(REMEMBER_REMOVAL_MS)];
    const [removed, others] = list(await this.#remove.run(this.#send, keys, args));
    return { removed: Number(removed) === 1, others: Number(others) === 1 };
  }

  async #note(
    { hash, uidHash, expiresAt, sealed }: IndexedSession,
    when: 'always' | 'if there',
  ): Promise<void> {
    const leftMs = Math.min(expiresAt, LAST_MOMENT) - Date.now();
    const args = [hash, uidHash, String(leftMs), String(expiresAt), sealed, String(FORGOTTEN_AFTER_MS), when];
    await this.#put.run(this.#send, this.#keys, args);
  }

  async claimExpired(limit: number, leaseMs: number): Promise<readonly IndexedSession[]> {
    const claimed = list(await this.#claim.run(this.#send, this.#keys, [String(limit), String(leaseMs)]));
    return claimed.map((session) => {
      const [hash = '', uidHash = '', expiresAt, sealed = ''] = list(session).map(String);
      return { hash, uidHash, expiresAt: Number(expiresAt), sealed };
    });
  }
}

function list(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer;
  throw new TypeError('sendCommand must give back what Redis answers');
}
