import { EventEmitter, once } from 'node:events';
import { clearTimeout, setTimeout } from 'node:timers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from './host.js';
import type { AppEvent } from './messages.js';
import type { ErasureScenario } from './scenario.js';
import type { Semaphore } from './semaphore.js';
import type { Row } from './table.js';
import { Trial } from './trial.js';

/** Longer than the lease of what a kill has left, and than the longest pause of a storm. */
const STALLED_AFTER_MS = 40_000;
const ASK_EVERY_MS = 250;

/** The parts of the work. */
export type Phase = 'reading' | 'carrying out' | 'ending';

/** When an app has read so many rows, or so many users are erased. */
export interface Moment {
  readonly rows?: number;
  readonly erased?: number;
}

/** Users are to be erased, and everybody else is to stay. */
export abstract class ErasingTrial<Account = unknown, Result extends Row = Row> extends Trial<
  ErasureScenario,
  Account | undefined,
  Result
> {
  listed: readonly string[] = [];
  others: readonly string[] = [];
  /** Whether an app was told that all of them are noted. */
  requested = false;
  erased = 0;
  /** One user in seven is not on the list. */
  protected readonly othersShare: number = 1 / 6;
  /** How many kills met which part of the work. */
  readonly met: Record<Phase, number> = { reading: 0, 'carrying out': 0, ending: 0 };
  /** Whether nothing has happened for such a time that nothing more is to come. */
  stalled = false;
  /** When an app had read the list to its end for the first time. */
  protected listReadAt = Infinity;
  readonly #rows = new Map<Host, number>();
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #watch: NodeJS.Timeout | undefined;
  #doneAt = NaN;

  /** What the apps find as they begin. @param uids of all users */
  protected abstract prepare(uids: readonly string[]): void | Promise<void>;
  /** Whether the apps have done all their work. */
  protected abstract isDone(): Promise<boolean>;

  protected place(): string | Promise<string> | undefined {
    return this.scenario.place?.(this);
  }

  protected override hear(event: AppEvent, host: Host): void {
    if (event.type === 'rows') {
      this.#rows.set(host, event.rows);
      if (event.rows === this.listed.length) this.listReadAt = Math.min(this.listReadAt, Date.now());
    }
    this.requested ||= event.type === 'requested';
    this.#changed();
  }

  #changed(): void {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => {
      this.#stall();
    }, STALLED_AFTER_MS).unref();
    this.#changes.emit('change');
  }

  #stall(): void {
    this.stalled = true;
    this.#changes.emit('change');
  }

  protected async play(inTurn: Semaphore): Promise<void> {
    const { erasures } = this.size;
    this.listed = Array.from({ length: erasures }, (_, n) => `listed-${n}`);
    this.others = Array.from({ length: Math.ceil(erasures * this.othersShare) }, (_, n) => `other-${n}`);
    const { users } = this.service;
    // Neither all of one kind at the beginning, nor all at the end.
    const all = this.random.shuffled([...this.listed, ...this.others]);
    for (const uid of all) users.add({ uid });
    users.on('removed', () => {
      this.erased += 1;
      this.#changed();
    });
    await this.prepare(all);
    await inTurn(async () => {
      await Promise.all(this.hosts.map((host) => this.begin(host)));
      await this.scenario.disturb(this);
    });
    await this.scenario.disturbEnd?.(this);
    while (!this.stalled && !(await this.isDone())) await sleep(ASK_EVERY_MS);
    this.#doneAt = Date.now();
  }

  begin(host: Host): Promise<void> {
    this.#rows.delete(host);
    return host.start(this.clock);
  }

  /**
   * Resolves when this app has read so many rows – or the list was read to its end –, or when so many users are erased;
   * and when nothing more happens.
   */
  async reaches(host: Host, { rows = 0, erased = 0 }: Moment): Promise<void> {
    const isReached = (): boolean =>
      rows > 0 ? this.requested || (this.#rows.get(host) ?? 0) >= rows : this.erased >= erased;
    while (!isReached() && !this.stalled) await once(this.#changes, 'change');
  }

  /** What a process says that was not there while it happened. */
  protected async settled(): Promise<Account | undefined> {
    await Promise.all(this.hosts.map((host) => host.end()));
    await this.firstHost.start();
    return (await this.firstHost.ask({ account: this.listed })) as Account | undefined;
  }

  /** How long after the last kill the work was done. */
  protected get settledSeconds(): number {
    return Math.ceil((this.#doneAt - (this.lastKillAt ?? NaN)) / 1000);
  }
}
