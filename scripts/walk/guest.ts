// A request of a walk, from its arrival to its answer, and what its handler does.
import { Latch } from '#support/latch.js';
import type { Hand } from './hand.js';
import type { Visit } from './oracle.js';
import type { Act } from './steps.js';

/** Ends sessions at the store, as a host's own code does: those that `sids` chooses among all, of the users given. */
export interface Desk {
  sidsOf(uid: string | undefined): Promise<readonly string[]>;
  destroy(sids: readonly string[]): Promise<void>;
}

export type Turns = readonly [turn: () => Promise<void>, finish: () => void];

export class Guest implements Visit {
  had: string | undefined;
  readonly entered = new Latch();
  /** Passed when the handler has returned and the response is closed. */
  readonly left = new Latch(2);

  constructor(
    readonly browser: number,
    readonly instance: number,
    readonly acts: readonly Act[],
    readonly login: string | undefined,
    /** The session that `end target` ends. */
    readonly target: string,
    /** Whether the client goes away before the handler acts. */
    readonly isGone = false,
    /** What it awaits from step to step, and calls when its response has closed. */
    readonly turns?: Turns,
  ) {}

  async handle(hand: Hand, desk: Desk): Promise<void> {
    this.had = hand.user;
    void hand.closed.then(() => {
      this.left.open();
      this.turns?.[1]();
    });
    this.entered.open();
    try {
      if (this.isGone) await hand.closed;
      await this.turns?.[0]();
      for (const act of this.acts) {
        await this.#perform(act, hand, desk);
        await this.turns?.[0]();
      }
    } finally {
      this.left.open();
    }
  }

  async #perform(act: Act, hand: Hand, desk: Desk): Promise<unknown> {
    const sids = (): Promise<readonly string[]> => desk.sidsOf(this.login ?? this.had);
    switch (act) {
      case 'log in':
        return hand['log in'](this.login ?? '');
      case 'end all':
        return desk.destroy(await sids());
      case 'end others':
        return desk.destroy((await sids()).filter((sid) => sid !== hand.sid));
      case 'end target':
        return desk.destroy([this.target]);
      default:
        return hand[act]();
    }
  }
}
