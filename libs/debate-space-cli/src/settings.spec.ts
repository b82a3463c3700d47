import { describe, expect, it } from '@jest/globals';
import { readSettings } from './settings.js';

const settings = (variables: Record<string, string>) => readSettings(variables, '/srv/app');

describe('the settings', () => {
  it.each([
    ['100/60s', { requests: 100, perMs: 60_000 }],
    ['5/1m', { requests: 5, perMs: 60_000 }],
    ['2/500ms', { requests: 2, perMs: 500 }],
    ['off', false],
  ])('understand the rate limit %s', (text, rateLimit) => {
    expect(settings({ DEBATE_SPACE_RATE_LIMIT: text }).rateLimit).toEqual(rateLimit);
  });

  it.each(['100', '0/60s', '100/0s', '100/60', '-1/1s', 'none'])(
    'do not understand the rate limit %s',
    (text) => {
      const { rateLimit, problems } = settings({ DEBATE_SPACE_RATE_LIMIT: text });
      expect(rateLimit).toBeUndefined();
      expect(problems).toContainEqual({
        option: 'DEBATE_SPACE_RATE_LIMIT',
        problem: 'must be off, or requests/time such as 100/60s',
        hint: expect.any(String),
      });
    },
  );

  it.each([
    ['memory', { engine: 'memory' }],
    ['sqlite:debate-space.db', { engine: 'sqlite', path: '/srv/app/debate-space.db' }],
    ['sqlite:/var/debate-space.db', { engine: 'sqlite', path: '/var/debate-space.db' }],
    ['postgres://db/app', { engine: 'postgres', url: 'postgres://db/app', schema: 'debate' }],
    ['postgresql://db/app', { engine: 'postgres', url: 'postgresql://db/app', schema: 'debate' }],
    ['mysql://db/app', { engine: 'mysql', url: 'mysql://db/app', prefix: 'app_' }],
    ['mariadb://db/app', { engine: 'mysql', url: 'mariadb://db/app', prefix: 'app_' }],
  ])('understand the storage %s', (text, storage) => {
    const variables = {
      DEBATE_SPACE_STORAGE: text,
      DEBATE_SPACE_STORAGE_SCHEMA: 'debate',
      DEBATE_SPACE_STORAGE_PREFIX: 'app_',
    };
    expect(settings(variables).storage).toEqual(storage);
  });

  it.each(['sqlite:', 'postgres', 'postgres://', 'mysql://', 'oracle://db', '/var/storage'])(
    'do not understand the storage %s',
    (text) => {
      expect(settings({ DEBATE_SPACE_STORAGE: text }).problems).toContainEqual(
        expect.objectContaining({
          option: 'DEBATE_SPACE_STORAGE',
          problem: expect.stringMatching(/^must be/),
        }),
      );
    },
  );

  it.each([
    ['postgres://db/app', true],
    ['mysql://db/app', true],
    ['sqlite:debate-space.db', false],
    ['memory', false],
  ])('report a missing storage key with the storage %s: %p', (text, isMissed) => {
    const keyless = expect.objectContaining({ option: 'DEBATE_SPACE_STORAGE_KEY', problem: 'is not set' });
    const missed = (more: Record<string, string>) =>
      settings({ DEBATE_SPACE_STORAGE: text, ...more }).problems;
    const expected = isMissed ? expect.arrayContaining([keyless]) : expect.not.arrayContaining([keyless]);
    expect(missed({})).toEqual(expected);
    expect(missed({ DEBATE_SPACE_STORAGE_KEY: 'x'.repeat(16) })).not.toContainEqual(keyless);
  });

  it.each([
    ['one-key-of-a-test', 'one-key-of-a-test'],
    ['new+key/=, old+key/=', ['new+key/=', 'old+key/=']],
    ['new-key old-key\n', ['new-key', 'old-key']],
    ['new-key,old-key,oldest-key', ['new-key', 'old-key', 'oldest-key']],
    [' , ', undefined],
  ])('understand the storage keys %j', (text, storageKey) => {
    expect(settings({ DEBATE_SPACE_STORAGE_KEY: text }).storageKey).toEqual(storageKey);
  });

  it('leave what is not said to the plugin', () => {
    const { rateLimit, listAuth, secretKeyEncoding, storage, allowInsecureHttp } = settings({});
    expect([rateLimit, listAuth, secretKeyEncoding]).toEqual([undefined, undefined, undefined]);
    expect([storage, allowInsecureHttp]).toEqual([{ engine: 'memory' }, false]);
  });
});
