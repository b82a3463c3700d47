import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ErasureStatus } from 'nestjs-debate-space';
import { ErasingTrial } from './erasing-trial.js';
import {
  compareErasures,
  erasureColumns,
  erasureViolations,
  type ErasureAccount,
  type ErasureResult,
} from './erasure-account.js';
import type { Host } from './host.js';
import { temporaryFolder } from './places.js';
import type { TrialSettings } from './trial.js';

const REFERENCE = 'kill -9';

/** A list of users is to be erased, and everybody else is to stay. */
export class ErasureTrial extends ErasingTrial<ErasureAccount, ErasureResult> {
  readonly columns = erasureColumns;
  readonly #list = join(temporaryFolder(), 'users.txt');

  protected newHost(settings: TrialSettings): Host {
    const erasure = { list: this.#list, mode: this.scenario.mode, reference: REFERENCE };
    return this.hostOf({ ...settings, program: 'erasure-app.js', erasure });
  }

  protected prepare(): void {
    writeFileSync(this.#list, `${this.listed.join('\n')}\n`);
  }

  protected async isDone(): Promise<boolean> {
    const status = (await this.firstHost.ask({})) as ErasureStatus | undefined;
    return status?.finishedAt !== undefined;
  }

  protected result(account: ErasureAccount | undefined): ErasureResult {
    if (account === undefined) throw new Error('the app does not answer');
    const { scenario, service, listed, others, listReadAt } = this;
    const counts = compareErasures(account, { service, listed, others, mode: scenario.mode, listReadAt });
    const { settledSeconds, seconds, met } = this;
    this.notes.push(
      `killed ${Object.entries(met)
        .map(([phase, count]) => `${count} times while ${phase}`)
        .join(', ')}`,
    );
    return { scenario: scenario.name, kills: this.kills, ...counts, settledSeconds, seconds };
  }

  protected violations(result: ErasureResult): string[] {
    return erasureViolations(this.scenario, result);
  }
}
