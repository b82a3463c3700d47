/**
 * What an operator should change in a Redis that is to lose nothing.
 * @param info the reply to `INFO`; what it does not say gives no warning, since many hosts restrict it
 */
export function redisWarnings(info: string): readonly string[] {
  const setting = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1];
  const warnings: string[] = [];
  if (setting('aof_enabled') === '0') {
    warnings.push(
      'This Redis has no append-only file: a restart loses logouts and erasures that are not delivered yet. hint: set appendonly yes',
    );
  }
  const policy = setting('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    warnings.push(
      `This Redis deletes data when its memory is full (maxmemory-policy ${policy}), logouts and erasures too. hint: set maxmemory-policy noeviction`,
    );
  }
  return warnings;
}
