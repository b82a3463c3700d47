import { Ledger } from './ledger.mjs';
import { Load } from './load.mjs';
import { logoutColumns, logoutViolations } from './logout-account.mjs';
import { Sessions } from './session-store.mjs';
import { settled } from './settled.mjs';
import { Trial } from './trial.mjs';

/** Browsers log out, and the account of who was promised what. */
export class LogoutTrial extends Trial {
  ledger = new Ledger();
  columns = logoutColumns;
  #sessions = new Sessions();

  host(settings) {
    return super.host({ ...settings, program: 'app.mjs' }, this.#sessions);
  }

  async play(inTurn) {
    await inTurn(async () => {
      await Promise.all(this.hosts.map((host) => host.start(this.clock)));
      const load = new Load(this.hosts, this.ledger, this.random, this.scenario);
      load.start();
      await this.scenario.disturb?.(this);
      await this.ledger.reaches(this.size.endings);
      await load.stop();
    });
    await this.scenario.afterwards?.(this);
  }

  settled() {
    return settled(this);
  }

  /** What was promised, against what has arrived by now. */
  compare() {
    return this.ledger.compare(this.service.received.logouts);
  }

  result({ waiting, parked, lost }) {
    const { delivered, duplicates, invented } = this.compare();
    const { asked, acknowledged, refused, slowestMs } = this.ledger;
    const takenUpMs = this.lastKillAt && this.ledger.takenUpMs(this.service.received.all, this.lastKillAt);
    return {
      scenario: this.scenario.name,
      kills: this.kills,
      asked,
      acknowledged,
      delivered,
      duplicates,
      invented: invented.length,
      waiting: waiting.length,
      parked: parked.length,
      lost: lost.length,
      refused,
      slowestMs: Math.round(slowestMs),
      takenUpSeconds: takenUpMs === undefined ? '' : Math.ceil(takenUpMs / 1000),
      degraded: this.count('storage-degraded'),
      seconds: this.seconds,
      lostUids: lost,
    };
  }

  violations(result) {
    return logoutViolations(this.scenario, result);
  }
}
