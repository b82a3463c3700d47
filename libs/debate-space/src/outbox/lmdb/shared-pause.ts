import type { LmdbFile } from './lmdb-file.js';
import type { OutboxClock } from './outbox-clock.js';

/** A pause of all processes. It lasts by the outbox's clock, so never longer than it should when the machine's goes back. */
export class SharedPause {
  readonly #file: LmdbFile;
  readonly #clock: OutboxClock;

  constructor(file: LmdbFile, clock: OutboxClock) {
    this.#file = file;
    this.#clock = clock;
  }

  get until(): number {
    return (this.#file.databases.meta.get('pause') as number | undefined) ?? 0;
  }

  /** Never shortens one. */
  async extend(ms: number): Promise<void> {
    for (;;) {
      const { meta } = this.#file.databases;
      const stored = meta.getEntry('pause');
      const clock = this.#clock.read();
      const until = clock.now + ms;
      if (stored && (stored.value as number) >= until) return;
      const write = () => {
        void meta.put('pause', until, (stored?.version ?? 0) + 1);
        this.#clock.write(clock);
      };
      if (await this.#file.write(meta, 'pause', stored?.version, write)) return;
    }
  }
}
