// What happens to the apps, to their server and to the service while browsers log out.
import { clearInterval, setInterval } from 'node:timers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultRule, Operation } from 'debate-space-simulator';
import type { Host } from './host.js';
import type { LogoutTrial } from './logout-trial.js';
import type { Trial } from './trial.js';

const MAX_BOOT_MS = 1_000;
const SHUTDOWN_WITHIN_MS = 20_000;
const MAX_GUST_MS = 500;
/** Three refusals, with what is waited between them. */
const PARKED_WITHIN_MS = 8_000;

/** `kill -9` of every app at moments of its own; now and then while it boots. */
export async function killAtRandom(trial: LogoutTrial): Promise<void> {
  const { hosts, ledger, random, size } = trial;
  const perHost = Math.ceil(size.kills / hosts.length);
  const most = Math.floor((1.6 * size.endings) / perHost); // on average a little less than there is
  const kill = async (host: Host): Promise<void> => {
    trial.noteKill();
    await host.end();
  };
  const plague = async (host: Host): Promise<void> => {
    for (let kills = 0; kills < perHost; kills += 1) {
      await ledger.reaches(ledger.acknowledged + random.from(0, most));
      await sleep(random.from(0, 30));
      await kill(host);
      if (random.next() < 1 / 10 && kills + 1 < perHost) {
        kills += 1;
        void host.start(trial.clock);
        await sleep(random.from(0, MAX_BOOT_MS));
        await kill(host);
      }
      trial.beforeStart?.();
      await host.start(trial.clock);
    }
  };
  await Promise.all(hosts.map(plague));
}

/** SIGTERM, and what the shutdown left undelivered is the next start's. */
export async function shutDownAtRandom(trial: LogoutTrial): Promise<void> {
  const { firstHost: host, ledger, random, size } = trial;
  for (let ends = 0; ends < size.kills; ends += 1) {
    await ledger.reaches(ledger.acknowledged + random.from(1, Math.floor(size.endings / size.kills)));
    trial.noteKill();
    const inTime = sleep(SHUTDOWN_WITHIN_MS, true, { ref: false });
    if (await Promise.race([host.end('SIGTERM'), inTime])) {
      trial.trouble.push(`SIGTERM did not end the app within ${SHUTDOWN_WITHIN_MS} ms`);
      await host.end();
    }
    trial.notes.push(
      `shutdown ${ends + 1} left ${trial.compare().missing.length} acknowledged logouts to the next start`,
    );
    await host.start(trial.clock);
  }
}

/** Redis or Postgres goes without a word, and comes back a moment later. */
export async function killServerAtRandom(trial: LogoutTrial): Promise<void> {
  const { ledger, random, size, server } = trial;
  if (!server) throw new Error('this storage has no server');
  for (let kills = 0; kills < size.kills; kills += 1) {
    await ledger.reaches(ledger.acknowledged + random.from(1, Math.floor(size.endings / size.kills)));
    await server.kill();
    await sleep(random.from(100, 1_500));
    await server.start();
    trial.noteKill(); // only now anything can be taken up
  }
}

/** The app's clock is that of the service again, and an operator has everything that is parked sent anew. */
export async function setRightAndReplay(trial: LogoutTrial): Promise<void> {
  const host = trial.firstHost;
  await sleep(PARKED_WITHIN_MS);
  await host.end();
  trial.clock = undefined;
  await host.start();
  const retried = await host.ask({ retry: true });
  trial.notes.push(`${String(retried)} parked logouts were retried`);
  if (!(Number(retried) > 0)) trial.trouble.push('nothing was parked');
}

type Operations = readonly [Operation, ...Operation[]];

/** Everything an overloaded service and a bad line do to these operations, until the answer to `storm()` is called. */
export function storm({ service, random }: Trial, operations: Operations = ['logout']): () => void {
  const headers = { 'retry-after': '2' };
  const kinds: [FaultRule, ...FaultRule[]] = [
    { kind: 'status', status: 429, headers },
    { kind: 'status', status: 429 },
    { kind: 'status', status: 503 },
    { kind: 'reset-after-apply' },
    { kind: 'cut-body' },
    { kind: 'outage' },
  ];
  const timer = setInterval(() => {
    const operation = random.oneOf(operations);
    service.faults.add({ ...random.oneOf(kinds), operation, times: random.from(1, 4) });
  }, 60);
  return () => {
    clearInterval(timer);
    service.faults.clear();
  };
}

/** The same in gusts, with the service at its best between them. @returns ends it */
export function gusts(trial: Trial, operations: Operations): () => void {
  let isOver = false;
  let calm = (): void => undefined;
  const blow = async (): Promise<void> => {
    while (!isOver) {
      calm = storm(trial, operations);
      await sleep(trial.random.from(100, MAX_GUST_MS));
      calm();
      await sleep(trial.random.from(100, MAX_GUST_MS));
    }
  };
  void blow();
  return () => {
    isOver = true;
    calm();
  };
}

/** From now on time passes so many times as fast, for the apps that are started and for the service. */
export function hurry(trial: Trial, speed: number): void {
  const since = Date.now();
  trial.clock = { speed, since };
  const timer = setInterval(() => {
    trial.service.clockOffsetSeconds = ((Date.now() - since) * (speed - 1)) / 1000;
  }, 20);
  timer.unref();
}
