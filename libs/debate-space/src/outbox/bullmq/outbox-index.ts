import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { RedisScript, type SendCommand } from '../../redis-script.js';
import type { FinishedEntry, OutboxCounts } from '../outbox.js';
import type { LogoutJobs } from './logout-jobs.js';
import { ADMIT, END, GLANCE, HOLD, PARK, PAUSE, PEND, RELEASE, STATES } from './outbox-scripts.js';

type State = keyof OutboxCounts;
type Word = string | number;

export interface JobState {
  readonly state: State | undefined;
  /** Milliseconds since 1970; absent when it is due already, or parked. */
  readonly dueAt?: number;
}

export interface Glance {
  readonly counts: OutboxCounts;
  /** `endedAt` of the oldest pending one. */
  readonly oldest: number | undefined;
  /** Milliseconds since 1970, 0 when something waits already. */
  readonly dueAt: number | undefined;
  readonly pausedMs: number;
}

/** BullMQ makes a job's place from its time, so that jobs of the same millisecond keep their order. */
const SCORE_PER_MS = 0x1000;

/** What the outbox keeps in Redis beside the jobs of BullMQ; see `outbox-scripts.ts`. */
export class OutboxIndex {
  readonly #client: Redis;
  readonly #jobs: LogoutJobs;
  readonly #tag: string;
  readonly #sets: readonly string[];
  readonly #scripts = {
    hold: new RedisScript(HOLD),
    release: new RedisScript(RELEASE),
    pend: new RedisScript(PEND),
    park: new RedisScript(PARK),
    end: new RedisScript(END),
    states: new RedisScript(STATES),
    glance: new RedisScript(GLANCE),
    pause: new RedisScript(PAUSE),
    admit: new RedisScript(ADMIT),
  };

  constructor(client: Redis, jobs: LogoutJobs, prefix: string, namespace: string) {
    this.#client = client;
    this.#jobs = jobs;
    this.#tag = `${prefix}:outbox-${namespace}`;
    this.#sets = ['held', 'pending', 'parked'].map((name) => `${this.#tag}:${name}`);
  }

  /** @returns whether there was no such job */
  async hold(id: string, endedAt: number, uidHash: string): Promise<boolean> {
    return isOne(
      await this.#onSets(
        this.#scripts.hold,
        [this.#user(uidHash), this.#jobs.key(id), `${this.#tag}:adding:${id}`],
        [id, endedAt],
      ),
    );
  }

  /** @returns whether it was held */
  async release(id: string): Promise<boolean> {
    return isOne(await this.#onSets(this.#scripts.release, [], [id]));
  }

  /** @returns whether there is such a job */
  async pend(id: string, endedAt: number): Promise<boolean> {
    return isOne(await this.#onSets(this.#scripts.pend, [this.#jobs.key(id)], [id, endedAt]));
  }

  /** @returns whether it was pending */
  async park(id: string): Promise<boolean> {
    return isOne(
      await this.#onSets(this.#scripts.park, ['delayed', 'wait', 'active'].map(this.#keyOf), [id]),
    );
  }

  /** Forgets it, and keeps the record instead. @returns whether it was in that set, or in any when none is named */
  async end(
    id: string,
    from: State | '',
    uidHash: string,
    record?: FinishedEntry,
    keepMs = 0,
  ): Promise<boolean> {
    const keys = [this.#user(uidHash), this.#finished(uidHash)];
    const args = [id, from, record ? JSON.stringify(record) : '', record?.finishedAt ?? 0, keepMs];
    return isOne(await this.#onSets(this.#scripts.end, keys, args));
  }

  async states(ids: readonly string[]): Promise<readonly JobState[]> {
    const states = await this.#onSets(this.#scripts.states, [this.#jobs.key('delayed')], ids);
    return (states as [string, string][]).map(([state, score]) => ({
      state: state === '' ? undefined : (state as State),
      ...(score !== '' && { dueAt: timeOf(score) }),
    }));
  }

  async glance(tickMs: number): Promise<Glance> {
    const keys = [...['delayed', 'wait', 'meta'].map(this.#keyOf), `${this.#tag}:pause`];
    const answer = await this.#onSets(this.#scripts.glance, keys, [
      this.#jobs.key(''),
      tickMs,
      `${this.#tag}:adding:`,
    ]);
    const [held, pending, parked, oldest, waiting, first, pausedMs] = answer as [number, number, number, string, number, string, number]; // prettier-ignore
    const dueAt = first === '' ? undefined : timeOf(first);
    return {
      counts: { held, pending, parked },
      oldest: oldest === '' ? undefined : Number(oldest),
      dueAt: waiting > 0 ? 0 : dueAt,
      pausedMs,
    };
  }

  async ofUser(uidHash: string): Promise<readonly string[]> {
    return this.#client.smembers(this.#user(uidHash));
  }

  /** The longest parked first. */
  async parked(limit: number, skip: number): Promise<readonly string[]> {
    return limit > 0 ? this.#client.zrange(`${this.#tag}:parked`, skip, skip + limit - 1) : [];
  }

  async finishedOf(uidHash: string, since: number): Promise<readonly FinishedEntry[]> {
    const records = await this.#client.zrangebyscore(this.#finished(uidHash), since, '+inf');
    return records.map((record) => JSON.parse(record) as FinishedEntry);
  }

  async pause(ms: number): Promise<void> {
    await this.#run(this.#scripts.pause, [`${this.#tag}:pause`], [Math.ceil(ms)]);
  }

  async isPaused(): Promise<boolean> {
    return (await this.#client.exists(`${this.#tag}:pause`)) === 1;
  }

  async admit(requests: number, perMs: number): Promise<number> {
    return Number(
      await this.#run(this.#scripts.admit, [`${this.#tag}:admitted`], [requests, perMs, randomUUID()]),
    );
  }

  readonly #keyOf = (name: string): string => this.#jobs.key(name);

  #user(uidHash: string): string {
    return `${this.#tag}:user:${uidHash}`;
  }

  #finished(uidHash: string): string {
    return `${this.#tag}:finished:${uidHash}`;
  }

  async #onSets(script: RedisScript, keys: readonly string[], args: readonly Word[]): Promise<unknown> {
    return this.#run(script, [...this.#sets, ...keys], args);
  }

  async #run(script: RedisScript, keys: readonly string[], args: readonly Word[]): Promise<unknown> {
    const send: SendCommand = async (command = '', ...words) => this.#client.call(command, ...words);
    return script.run(send, keys, args.map(String));
  }
}

function isOne(answer: unknown): boolean {
  return answer === 1;
}

function timeOf(score: string): number {
  return Math.floor(Number(score) / SCORE_PER_MS);
}
