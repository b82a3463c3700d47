// Users who log in and out of a host, for the benchmark.
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { request, type Dispatcher } from 'undici';

/** How long each logout took, from the request to the end of the answer, in milliseconds. One begins every so often. */
export async function logoutTimes(url: string, count: number, everyMs: number): Promise<number[]> {
  const begun = performance.now();
  const users = Array.from({ length: count }, async (_, index) => {
    await pause(begun + index * everyMs - performance.now());
    return logInAndOut(url);
  });
  return Promise.all(users);
}

/** Until the code of the host is compiled. */
export async function warmUp(url: string): Promise<void> {
  const users = Array.from({ length: 8 }, async () => {
    for (let count = 0; count < 50; count += 1) await logInAndOut(url);
  });
  await Promise.all(users);
}

/** Requests a second of another route, while as many users log out. */
export async function rateBesideLogouts(
  url: string,
  { connections, logouts, everyMs }: { connections: number; logouts: number; everyMs: number },
): Promise<number> {
  let served = 0;
  let isOver = false;
  const begun = performance.now();
  const visitors = Array.from({ length: connections }, async () => {
    while (!isOver) {
      await answerOf(`${url}/hello`, { method: 'GET' });
      served += 1;
    }
  });
  await logoutTimes(url, logouts, everyMs);
  isOver = true;
  await Promise.all(visitors);
  return served / ((performance.now() - begun) / 1000);
}

async function logInAndOut(url: string): Promise<number> {
  const { headers } = await answerOf(`${url}/login`, { method: 'POST' });
  const [set = ''] = [headers['set-cookie'] ?? []].flat();
  const [cookie = ''] = set.split(';');
  const begun = performance.now();
  await answerOf(`${url}/logout`, { method: 'POST', headers: { cookie } });
  return performance.now() - begun;
}

async function answerOf(
  url: string,
  options: Pick<Dispatcher.RequestOptions, 'method' | 'headers'>,
): Promise<Dispatcher.ResponseData> {
  const response = await request(url, options);
  await response.body.text();
  if (response.statusCode !== 200) throw new Error(`${url} answered with ${response.statusCode}`);
  return response;
}
