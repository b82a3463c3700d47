import { Browser } from './browser.js';
import type { LogoutTrial } from './logout-trial.js';

/**
 * Users log out and log in again, in turn, and the app dies right after each answer. It never delivers: another app on the
 * same storage does.
 */
export async function killAfterAnswer(trial: LogoutTrial): Promise<void> {
  const { firstHost: host, ledger, size } = trial;
  const browser = new Browser();
  for (let kills = 0; kills < size.kills; kills += 1) {
    const isLogout = kills % 2 === 0;
    const uid = isLogout ? `leaver-${kills}` : `returner-${kills}`;
    const { url = '' } = host;
    const login = await browser.post(`${url}/login`, { 'x-user': uid });
    if (isLogout) ledger.ask(uid);
    else ledger.renew(uid, false);
    const dead = host.ended();
    const path = isLogout ? 'logout' : 'login-again';
    const answer = await browser.post(`${url}/${path}`, {
      cookie: login?.cookie,
      'x-die': 'after the answer',
    });
    if (answer?.body !== uid) trial.trouble.push(`${path} ${kills} was not answered before the app died`);
    else if (isLogout) ledger.acknowledge(uid, 0);
    else ledger.renew(uid, true);
    await dead;
    trial.noteKill();
    await host.start(trial.clock);
  }
  browser.close();
}

/** How soon after their answers the logouts arrived. */
export function noteDeliveryTimes({ ledger, service, notes }: LogoutTrial): void {
  const times = ledger.deliveryTimes(service.received.all);
  if (times.length === 0) return;
  const seconds = times.map((ms) => (ms / 1000).toFixed(1));
  const sorted = times.toSorted((one, other) => one - other);
  const [median = NaN, slowest = NaN] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  notes.push(
    `${times.length} logouts arrived; after their answers: the first ${String(seconds[0])} s, ` +
      `the median ${(median / 1000).toFixed(1)} s, the slowest ${(slowest / 1000).toFixed(1)} s`,
  );
}
