import { Ledger } from './ledger.js';
import { Load } from './load.js';
import { logoutColumns, logoutViolations, type LogoutResult } from './logout-account.js';
import type { Host } from './host.js';
import type { LogoutScenario } from './scenario.js';
import type { Semaphore } from './semaphore.js';
import type { ServerProcess } from './server-process.js';
import { Sessions } from './session-store.js';
import { settled, type Settled } from './settled.js';
import { Trial, type TrialSettings } from './trial.js';

/** Browsers log out, and the account of who was promised what. */
export class LogoutTrial extends Trial<LogoutScenario, Settled, LogoutResult> {
  readonly ledger = new Ledger();
  readonly columns = logoutColumns;
  /** The server of the storage, where it has one. */
  server: ServerProcess | undefined;
  /** What holds the storage, where a disturbance changes it. */
  folder = '';
  /** Called before an app that was killed is started again. */
  beforeStart: (() => void) | undefined;
  readonly #sessions = new Sessions();

  protected place(): string | Promise<string> | undefined {
    return this.scenario.place?.(this);
  }

  protected newHost(settings: TrialSettings): Host {
    return this.hostOf({ ...settings, program: 'app.js' }, this.#sessions);
  }

  protected async play(inTurn: Semaphore): Promise<void> {
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

  protected settled(): Promise<Settled> {
    return settled(this);
  }

  /** What was promised, against what has arrived by now. */
  compare(): ReturnType<Ledger['compare']> {
    return this.ledger.compare(this.service.received.all, this.#sessions);
  }

  protected result({ waiting, parked, lost }: Settled): LogoutResult {
    const { delivered, duplicates, invented, unanswered, unansweredMissing } = this.compare();
    const { reportsCutOff = false } = this.scenario;
    const { asked, acknowledged, refused, slowestMs } = this.ledger;
    const takenUpMs = this.lastKillAt && this.ledger.takenUpMs(this.service.received.all, this.lastKillAt);
    return {
      scenario: this.scenario.name,
      kills: this.kills,
      asked,
      acknowledged,
      delivered,
      lost: lost.length,
      unanswered: unanswered.length,
      unansweredLost: unansweredMissing.length,
      duplicates,
      invented: invented.filter((uid) => !(reportsCutOff && this.ledger.isCutOff(uid))).length,
      waiting: waiting.length,
      parked: parked.length,
      refused,
      slowestMs: Math.round(slowestMs),
      takenUpSeconds: takenUpMs === undefined ? undefined : Math.ceil(takenUpMs / 1000),
      degraded: this.count('storage-degraded'),
      seconds: this.seconds,
      lostUids: lost,
    };
  }

  protected violations(result: LogoutResult): string[] {
    return logoutViolations(this.scenario, result);
  }
}
