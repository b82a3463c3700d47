import { fill } from './places.mjs';

const FELT_WITHIN_MS = 60_000;
const RECOVERED_WITHIN_MS = 20_000;

/**
 * Nothing is delivered while the disk is full, so that the file has to grow. Then there is room again, and what was in
 * memory must be in the file before the app is killed – and the service comes back.
 */
export async function fillTheDisk(trial) {
  const { ledger, size, disk, hosts, service } = trial;
  await ledger.reaches(size.endings / 4);
  await service.goDown();
  const felt = trial.heard('storage-degraded', FELT_WITHIN_MS);
  const empty = fill(disk);
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
  await hosts[0].end();
  await service.comeBack();
  await hosts[0].start();
}
