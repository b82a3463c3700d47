import { setTimeout as sleep } from 'node:timers/promises';

const MOST_BOOT_MS = 1_000;
/** So many of the kills meet the reading of the list, and so many the end. */
const READING = 1 / 5;
const ENDING = 1 / 6;
/** The end: so many users. */
const LAST = 8;

/** `kill -9` at moments spread over the whole work, each of another app in turn; now and then while it boots. */
export async function killErasing(trial) {
  const { hosts, random } = trial;
  const met = { reading: 0, 'carrying out': 0, ending: 0 };
  const kill = async (host) => {
    trial.noteKill();
    met[phaseOf(trial)] += 1;
    await host.end();
  };
  const plague = async (host, moments) => {
    for (const moment of moments) {
      await trial.reaches(host, moment);
      if (trial.stalled) return;
      if (random.next() < 1 / 2) await sleep(random.from(1, 30));
      await kill(host);
      if (random.next() < 1 / 10) {
        void trial.begin(host);
        await sleep(random.from(0, MOST_BOOT_MS));
        await kill(host);
      }
      await trial.begin(host);
    }
  };
  const moments = momentsOf(trial);
  await Promise.all(
    hosts.map((host, n) =>
      plague(
        host,
        moments.filter((_, m) => m % hosts.length === n),
      ),
    ),
  );
  trial.notes.push(`killed ${Object.entries(met).map(([phase, count]) => `${count} times while ${phase}`).join(', ')}`); // prettier-ignore
}

/** The same while there is no list: at moments spread over the work until the last few. */
export async function killRequesting(trial) {
  const { hosts, random, size } = trial;
  const moments = Array.from({ length: size.kills }, () => random.from(0, size.erasures - LAST));
  for (const [n, erased] of moments.toSorted((one, other) => one - other).entries()) {
    const host = hosts[n % hosts.length];
    await trial.reaches(host, { erased });
    await sleep(random.from(1, 100));
    trial.noteKill();
    await host.end();
    await trial.begin(host);
  }
}

function momentsOf({ random, size: { kills, erasures } }) {
  const some = (share, moment) => Array.from({ length: Math.round(kills * share) }, moment);
  const reading = some(READING, () => ({ rows: random.from(1, erasures) }));
  const ending = some(ENDING, () => ({ erased: random.from(erasures - LAST, erasures) }));
  const rest = Array.from({ length: kills - reading.length - ending.length }, () => ({
    erased: random.from(0, erasures - LAST),
  }));
  return [...reading, ...[...rest, ...ending].toSorted((one, other) => one.erased - other.erased)];
}

function phaseOf({ erased, requested, size: { erasures } }) {
  if (erased >= erasures - LAST) return 'ending';
  return requested ? 'carrying out' : 'reading';
}
