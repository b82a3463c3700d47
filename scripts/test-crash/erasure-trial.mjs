import { EventEmitter, once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clearTimeout, setTimeout } from 'node:timers';
import { setTimeout as sleep } from 'node:timers/promises';
import { compareErasures, erasureColumns, erasureViolations } from './erasure-account.mjs';
import { temporaryFolder } from './places.mjs';
import { Trial } from './trial.mjs';

const REFERENCE = 'kill -9';
/** One user in seven is not on the list. */
const OTHERS = 1 / 6;
/** Longer than the lease of what a kill has left, and than the longest pause of a storm. */
const STALLED_AFTER_MS = 40_000;
const ASK_EVERY_MS = 250;

/** A list of users is to be erased, and everybody else is to stay. */
export class ErasureTrial extends Trial {
  columns = erasureColumns;
  /** Whether an app was told that all of them are noted. */
  requested = false;
  erased = 0;
  /** Whether nothing has happened for so long that nothing more is to come. */
  stalled = false;
  #list = join(temporaryFolder(), 'users.txt');
  #rows = new Map();
  #changes = new EventEmitter().setMaxListeners(0);
  #watch;
  #listReadAt = Infinity;

  host(settings) {
    const { mode } = this.scenario;
    const erasure = { list: this.#list, mode, reference: REFERENCE };
    return super.host({ ...settings, program: 'erasure-app.mjs', erasure });
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
    this.others = Array.from({ length: Math.ceil(erasures * OTHERS) }, (_, n) => `other-${n}`);
    const { users } = this.service;
    // Neither all of one kind at the beginning, nor all at the end.
    for (const uid of this.random.shuffled([...this.listed, ...this.others])) users.add({ uid });
    users.on('removed', () => {
      this.erased += 1;
      this.#changed();
    });
    writeFileSync(this.#list, `${this.listed.join('\n')}\n`);
    await inTurn(async () => {
      await Promise.all(this.hosts.map((host) => this.begin(host)));
      await this.scenario.disturb(this);
      await this.#over();
    });
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

  async #over() {
    while (!this.stalled) {
      const status = await this.hosts[0].ask({});
      if (status?.finishedAt !== undefined) return;
      await sleep(ASK_EVERY_MS);
    }
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
    return { scenario: scenario.name, kills: this.kills, ...counts, seconds: this.seconds };
  }

  violations(result) {
    return erasureViolations(this.scenario, result);
  }
}
