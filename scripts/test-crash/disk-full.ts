import type { LogoutTrial } from './logout-trial.js';
import { fill } from './places.js';

const FELT_WITHIN_MS = 60_000;
const RECOVERED_WITHIN_MS = 20_000;

/**
 * Nothing is delivered while the disk is full, so that the file has to grow. Then there is room again, and what was in
 * memory must be in the file before the app is killed – and the service comes back.
 */
export async function fillTheDisk(trial: LogoutTrial): Promise<void> {
  const { ledger, size, folder, firstHost, service } = trial;
  await ledger.reaches(size.endings / 4);
  await service.goDown();
  const felt = trial.heard('storage-degraded', FELT_WITHIN_MS);
  const empty = fill(folder);
  await felt;
  const before = ledger.acknowledged;
  await ledger.reaches(before + size.endings / 4);
  const recovered = trial.heard('storage-recovered', RECOVERED_WITHIN_MS);
  empty();
  await recovered;
  trial.notes.push(
    `${ledger.acknowledged - before} logouts were acknowledged from the first that the disk did not take until it took all`,
  );
  trial.noteKill();
  await firstHost.end();
  await service.comeBack();
  await firstHost.start();
}
