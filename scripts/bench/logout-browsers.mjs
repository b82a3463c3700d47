// Users who log in and out of a host, for the benchmark.
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { request } from 'undici';

/** How long each logout took, from the request to the end of the answer, in milliseconds. One begins every so often. */
export async function logoutTimes(url, count, everyMs) {
  const begun = performance.now();
  const users = Array.from({ length: count }, async (_, index) => {
    await pause(begun + index * everyMs - performance.now());
    return logInAndOut(url);
  });
  return Promise.all(users);
}

/** Until the code of the host is compiled. */
export async function warmUp(url) {
  const users = Array.from({ length: 8 }, async () => {
    for (let count = 0; count < 50; count += 1) await logInAndOut(url);
  });
  await Promise.all(users);
}

async function logInAndOut(url) {
  const { headers } = await post(`${url}/login`);
  const cookie = [headers['set-cookie']].flat()[0].split(';')[0];
  const begun = performance.now();
  await post(`${url}/logout`, { cookie });
  return performance.now() - begun;
}

async function post(url, headers = {}) {
  const response = await request(url, { method: 'POST', headers });
  await response.body.text();
  if (response.statusCode !== 200) throw new Error(`${url} answered with ${response.statusCode}`);
  return response;
}
