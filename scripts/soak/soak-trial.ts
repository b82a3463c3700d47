import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from '../test-crash/host.js';
import { Load } from '../test-crash/load.js';
import { logoutColumns, type LogoutResult } from '../test-crash/logout-account.js';
import { LogoutTrial } from '../test-crash/logout-trial.js';
import type { Measured } from '../test-crash/messages.js';
import type { LogoutScenario } from '../test-crash/scenario.js';
import type { Semaphore } from '../test-crash/semaphore.js';
import { ofPart, slopePerHour, type Sample } from './slope.js';

const CYCLES = 8;
const MEASUREMENTS_PER_CYCLE = 6;
/** What the caches and the compiler of V8 still take after the warm-up. */
const HEAP_SLACK_MB = 4;
/** Connections that are open at one moment, and at another are not. */
const HANDLES_SLACK = 20;
const LEAVERS_PER_CYCLE = 5;
const ERASED_WITHIN_MS = 60_000;

/**
 * An app that is never restarted works for a long time beside one that is: browsers log in and out, users are erased, the
 * service is away now and then. A fifth of the time is for warming up; then heap and handles have to stay what they are.
 */
export class SoakTrial extends LogoutTrial {
  override readonly columns = {
    ...logoutColumns,
    erased: 'erased',
    notErased: 'not erased',
    heapPerHour: 'heap MB/h',
    handlesPerHour: 'handles/h',
  };
  readonly #totalMs: number;
  readonly #heap: Sample[] = [];
  readonly #handles: Sample[] = [];
  readonly #leavers: string[] = [];

  constructor(scenario: LogoutScenario, minutes: number, seed: number) {
    super(scenario, scenario.size, seed);
    this.#totalMs = minutes * 60_000;
    this.maxMs = 2 * this.#totalMs + 10 * 60_000;
  }

  protected override async play(inTurn: Semaphore): Promise<void> {
    await inTurn(async () => {
      await Promise.all(this.hosts.map((host) => host.start()));
      const load = new Load(this.hosts, this.ledger, this.random, this.scenario);
      load.start();
      await sleep(this.#totalMs / 5);
      const cycleMs = (this.#totalMs * 0.8) / CYCLES;
      for (let cycle = 0; cycle < CYCLES; cycle += 1)
        await Promise.all([this.#disturb(cycleMs), this.#measure(cycleMs)]);
      await load.stop();
    });
    await this.#allErased();
  }

  protected override result(settled: Parameters<LogoutTrial['result']>[0]): LogoutResult {
    const notErased = this.#remaining().length;
    return Object.assign(super.result(settled), {
      erased: this.#leavers.length - notErased,
      notErased,
      heapPerHour: Number(slopePerHour(this.#heap).toFixed(1)),
      handlesPerHour: Number(slopePerHour(this.#handles).toFixed(1)),
    });
  }

  protected override violations(result: LogoutResult): string[] {
    const words = super.violations(result);
    const remaining = this.#remaining();
    if (remaining.length > 0) words.push(`${remaining.length} users are not erased`);
    for (const [what, samples, slack] of [
      ['heap', this.#heap, HEAP_SLACK_MB],
      ['number of handles', this.#handles, HANDLES_SLACK],
    ] as const) {
      const [early, late] = [ofPart(samples, 0), ofPart(samples, 2)];
      if (samples.length < CYCLES) words.push(`the ${what} was measured only ${samples.length} times`);
      if (late > early * 1.1 + slack) words.push(`the ${what} grew from ${early} to ${late}`);
    }
    return words;
  }

  /** Users leave, the service is away for a while, and the other app is restarted. */
  async #disturb(cycleMs: number): Promise<void> {
    const [steady, restarted] = this.hosts;
    await this.#erase(steady);
    await sleep(cycleMs / 4);
    await this.service.goDown();
    await sleep(cycleMs / 8);
    await this.service.comeBack();
    await sleep(cycleMs / 4); // the memory of the app that is restarted is delivered by then
    await restarted?.end('SIGTERM');
    await restarted?.start();
    await sleep(cycleMs / 4);
  }

  async #erase(host: Host | undefined): Promise<void> {
    const uids = Array.from({ length: LEAVERS_PER_CYCLE }, (_, n) => `leaver-${this.#leavers.length + n}`);
    this.#leavers.push(...uids);
    for (const uid of uids) {
      this.service.users.add({ uid });
      this.ledger.ask(uid); // an erasure logs the user out as well
    }
    await host?.ask({ erase: uids });
  }

  async #measure(cycleMs: number): Promise<void> {
    for (let n = 0; n < MEASUREMENTS_PER_CYCLE; n += 1) {
      await sleep(cycleMs / MEASUREMENTS_PER_CYCLE);
      const measured = (await this.firstHost.ask({ measure: true })) as Measured | undefined;
      if (!measured) continue;
      this.#heap.push({ at: Date.now(), value: measured.heapMb });
      this.#handles.push({ at: Date.now(), value: measured.handles });
    }
  }

  async #allErased(): Promise<void> {
    const deadline = Date.now() + ERASED_WITHIN_MS;
    while (this.#remaining().length > 0 && Date.now() < deadline) await sleep(500);
  }

  #remaining(): readonly string[] {
    return this.#leavers.filter((uid) => this.service.users.has(uid));
  }
}
