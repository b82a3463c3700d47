import { describe, expect, it } from '@jest/globals';
import { settingsOf } from './settings.js';

const settings = (env: Record<string, string>) => settingsOf(env, '/srv/app');
const problem = (name: string, text: unknown) =>
  expect.objectContaining({ option: `DEBATE_SPACE_${name}`, problem: text });

describe('the settings', () => {
  it.each([
    ['100/60s', { requests: 100, perMs: 60_000 }],
    ['5/1m', { requests: 5, perMs: 60_000 }],
    ['2/500ms', { requests: 2, perMs: 500 }],
    ['off', false],
  ])('understand the rate limit %s', (text, rateLimit) => {
    expect(settings({ DEBATE_SPACE_RATE_LIMIT: text }).options.http).toMatchObject({ rateLimit });
  });

  it.each(['100', '0/60s', '100/0s', '100/60', '-1/1s'])('do not understand the rate limit %s', (text) => {
    const { problems } = settings({ DEBATE_SPACE_RATE_LIMIT: text });
    const must = 'must be off, or requests/time such as 100/60s';
    expect(problems).toContainEqual(problem('RATE_LIMIT', must));
  });

  it.each([
    ['memory', { engine: 'memory' }],
    ['sqlite:debate-space.db', { engine: 'sqlite', url: '/srv/app/debate-space.db' }],
    ['sqlite:/var/debate-space.db', { engine: 'sqlite', url: '/var/debate-space.db' }],
    ['postgres://db/app', { engine: 'postgres', url: 'postgres://db/app', schema: 'debate' }],
    ['postgresql://db/app', { engine: 'postgres', url: 'postgresql://db/app' }],
    ['mysql://db/app', { engine: 'mysql', url: 'mysql://db/app', prefix: 'app_' }],
    ['mariadb://db/app', { engine: 'mysql', url: 'mariadb://db/app' }],
  ])('understand the storage %s', (text, storage) => {
    const names = { DEBATE_SPACE_STORAGE_SCHEMA: 'debate', DEBATE_SPACE_STORAGE_PREFIX: 'app_' };
    expect(settings({ DEBATE_SPACE_STORAGE: text, ...names }).storage).toMatchObject(storage);
  });

  it.each(['sqlite:', 'postgres', 'postgres://', 'mysql:db', 'oracle://db', '/var/storage'])(
    'do not understand the storage %s',
    (text) => {
      const { problems } = settings({ DEBATE_SPACE_STORAGE: text });
      expect(problems).toContainEqual(problem('STORAGE', expect.stringMatching(/^must be/)));
    },
  );

  it.each([
    ['one-key-of-a-test', 'one-key-of-a-test'],
    ['new+key/=, old+key/=', ['new+key/=', 'old+key/=']],
    ['new-key old-key\n', ['new-key', 'old-key']],
    [' , ', undefined],
  ])('understand the storage keys %j', (text, storageKey) => {
    expect(settings({ DEBATE_SPACE_STORAGE_KEY: text }).options.storageKey).toEqual(storageKey);
  });
});
