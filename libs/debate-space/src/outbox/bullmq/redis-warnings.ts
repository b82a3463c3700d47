import type { Redis } from 'ioredis';

const MOST_SKEW_MS = 5_000;

/** What an operator should mend in a Redis that is to lose nothing. `CONFIG` is forbidden by many hosters; `INFO` is not. */
export async function redisWarnings(client: Redis): Promise<readonly string[]> {
  const info = await client.info().catch(() => '');
  const before = Date.now();
  const [seconds, micros] = await client.time();
  const skewMs = (before + Date.now()) / 2 - (Number(seconds) * 1000 + Number(micros) / 1000);
  const setting = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1];

  const warnings: string[] = [];
  const aof = setting('aof_enabled');
  if (aof === undefined) {
    warnings.push('It could not be seen how this Redis saves its data; its append-only file should be on (appendonly yes).'); // prettier-ignore
  } else if (aof !== '1') {
    warnings.push('This Redis has no append-only file: when it restarts, logouts that are not delivered yet are lost. Set appendonly yes.'); // prettier-ignore
  }
  const policy = setting('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    warnings.push(`This Redis throws data away when its memory is full (maxmemory-policy ${policy}), logouts too. Set maxmemory-policy noeviction.`); // prettier-ignore
  }
  if (Math.abs(skewMs) > MOST_SKEW_MS) {
    warnings.push(`The clocks of this machine and of Redis differ by ${Math.round(Math.abs(skewMs) / 1000)} s; instances whose clocks differ deliver too early or too late. Set them.`); // prettier-ignore
  }
  return warnings;
}
