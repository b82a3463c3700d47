import { EventEmitter, once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clearTimeout, setTimeout } from 'node:timers';
import { setTimeout as sleep } from 'node:timers/promises';
import { compareErasures, erasureColumns, erasureViolations } from './erasure-account.mjs';
import { temporaryFolder } from './places.mjs';
import { Trial } from './trial.mjs';

const REFERENCE = 'kill -9';
/** Longer than the lease of what a kill has left, and than the longest pause of a storm. */
const STALLED_AFTER_MS = 40_000;
const ASK_EVERY_MS = 250;

/** A list of users is to be erased, and everybody else is to stay. */
export class ErasureTrial extends Trial {
  columns = erasureColumns;
  /** Whether an app was told that all of them are noted. */
  requested = false;
  erased = 0;
  /** One user in seven is not on the list. */
  othersShare = 1 / 6;
  /** How many kills met which part of the work. */
  met = { reading: 0, 'carrying out': 0, ending: 0 };
  /** Whether nothing has happened for such a time that nothing more is to come. */
  stalled = false;
  #list = join(temporaryFolder(), 'users.txt');
  #rows = new Map();
  #changes = new EventEmitter().setMaxListeners(0);
  #watch;
  #doneAt;
  #listReadAt = Infinity;

  /** @param app the program, and what it learns about the erasures */
  host(settings, app = { program: 'erasure-app.mjs', erasure: this.#erasure }) {
    return super.host({ ...settings, ...app });
  }

  get #erasure() {
    return { list: this.#list, mode: this.scenario.mode, reference: REFERENCE };
  }

  hear(event, host) {
    super.hear(event);
    if (event.type === 'rows') {
      this.#rows.set(host, event.rows);
      if (event.rows === this.listed.length) this.#listReadAt = Math.min(this.#listReadAt, Date.now());
    }
    this.requested ||= event.type === 'requested';
    this.#changed();
  }

  #changed() {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => this.#stall(), STALLED_AFTER_MS).unref();
    this.#changes.emit('change');
  }

  #stall() {
    this.stalled = true;
    this.#changes.emit('change');
  }

  async play(inTurn) {
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

  /** What the apps find as they begin. */
  prepare() {
    writeFileSync(this.#list, `${this.listed.join('\n')}\n`);
  }

  /** Whether the apps have done all their work. */
  async isDone() {
    return (await this.hosts[0].ask({}))?.finishedAt !== undefined;
  }

  begin(host) {
    this.#rows.delete(host);
    return host.start(this.clock);
  }

  /**
   * Resolves when this app has read so many rows – or the list was read to its end –, or when so many users are erased;
   * and when nothing more happens.
   * @param moment `{ rows }` or `{ erased }`
   */
  async reaches(host, { rows = 0, erased = 0 }) {
    const isReached = () =>
      rows > 0 ? this.requested || (this.#rows.get(host) ?? 0) >= rows : this.erased >= erased;
    while (!isReached() && !this.stalled) await once(this.#changes, 'change');
  }

  /** What a process says that was not there while it happened. */
  async settled() {
    await Promise.all(this.hosts.map((host) => host.end()));
    const [host] = this.hosts;
    await host.start();
    return host.ask({ account: this.listed });
  }

  result(account) {
    if (account === undefined) throw new Error('the app does not answer');
    const { scenario, service, listed, others } = this;
    const counts = compareErasures(account, {
      service,
      listed,
      others,
      mode: scenario.mode,
      listReadAt: this.#listReadAt,
    });
    const { settledSeconds, seconds, met } = this;
    this.notes.push(
      `killed ${Object.entries(met)
        .map(([phase, count]) => `${count} times while ${phase}`)
        .join(', ')}`,
    );
    return { scenario: scenario.name, kills: this.kills, ...counts, settledSeconds, seconds };
  }

  /** How long after the last kill the work was done. */
  get settledSeconds() {
    return Math.ceil((this.#doneAt - this.lastKillAt) / 1000);
  }

  violations(result) {
    return erasureViolations(this.scenario, result);
  }
}
