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
      expect(problems).toContain('DEBATE_SPACE_RATE_LIMIT must be off, or requests/time such as 100/60s');
    },
  );

  it.each([
    ['memory', { engine: 'memory' }],
    ['lmdb:outbox', { engine: 'lmdb', path: '/srv/app/outbox' }],
    ['lmdb:/var/outbox', { engine: 'lmdb', path: '/var/outbox' }],
    [
      'rediss://redis.internal:6380/1',
      { engine: 'bullmq', url: 'rediss://redis.internal:6380/1', prefix: 'app' },
    ],
  ])('understand the outbox %s', (text, outbox) => {
    const variables = { DEBATE_SPACE_OUTBOX: text, DEBATE_SPACE_OUTBOX_PREFIX: 'app' };
    expect(settings(variables).outbox).toEqual(outbox);
  });

  it.each(['lmdb:', 'redis://', 'bullmq', '/var/outbox'])('do not understand the outbox %s', (text) => {
    expect(settings({ DEBATE_SPACE_OUTBOX: text }).problems).toContainEqual(
      expect.stringContaining('DEBATE_SPACE_OUTBOX must be'),
    );
  });

  it('leave what is not said to the plugin', () => {
    const { rateLimit, listAuth, secretKeyEncoding, outbox, allowInsecureHttp } = settings({});
    expect([rateLimit, listAuth, secretKeyEncoding]).toEqual([undefined, undefined, undefined]);
    expect([outbox, allowInsecureHttp]).toEqual([{ engine: 'memory' }, false]);
  });
});
