import { describe, expect, it } from '@jest/globals';
import { format, inspect } from 'node:util';
import { Secret, SecretKeyProvider } from './secret.js';

const value = 'planted-value';
const secret = new Secret(value);

describe('a secret', () => {
  it('is revealed on request only', () => {
    expect(secret.reveal()).toBe(value);
  });

  it.each([
    ['String()', () => String(secret)],
    ['joining', () => [secret].join()],
    ['JSON.stringify', () => JSON.stringify({ secret })],
    ['util.inspect', () => inspect({ secret }, { depth: Infinity, showHidden: true, getters: true })],
    [
      'util.inspect without custom',
      () => inspect(secret, { customInspect: false, showHidden: true, getters: true }),
    ],
    ['console formats', () => format('%s %o %O %j', secret, secret, secret, secret)],
    ['Object.entries', () => JSON.stringify(Object.entries(secret))],
    ['structuredClone', () => inspect(structuredClone(secret))],
    ['an error that holds it', () => inspect(Object.assign(new Error('x'), { secret }))],
  ])('is not printed by %s', (_what, print) => {
    expect(print()).not.toContain(value);
  });

  it('cannot be changed', () => {
    expect(() => Object.assign(secret, { reveal: () => 'other' })).toThrow(TypeError);
  });
});

describe('a secret key that a function knows', () => {
  it('is asked each time', async () => {
    const keys = ['first', 'second'];
    const key = new SecretKeyProvider(() => Promise.resolve(keys.shift()), 'utf8');
    expect((await key.current()).reveal()).toBe('first');
    expect((await key.current()).reveal()).toBe('second');
  });

  it.each<[string, () => unknown, string]>([
    [
      'throws',
      () => {
        throw new TypeError('planted-secret');
      },
      'secretKey is unknown: the function failed (TypeError)',
    ],
    [
      'rejects',
      () => Promise.reject(new RangeError('planted-secret')),
      'secretKey is unknown: the function failed (RangeError)',
    ],
    ['returns nothing', () => undefined, 'secretKey must be a string; the function returned undefined'],
    ['returns no text', () => '', 'secretKey must not be empty or have blanks around it'],
    ['returns a line', () => 'planted-secret\n', 'secretKey must not be empty or have blanks around it'],
    ['returns control characters', () => 'planted\0secret', 'secretKey must not have control characters'],
  ])('is refused when the function %s, and never shown', async (_what, read, message) => {
    const error: unknown = await new SecretKeyProvider(read, 'utf8')
      .current()
      .catch((reason: unknown) => reason);
    expect(inspect(error, { depth: Infinity, showHidden: true })).toContain(message);
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('planted-secret');
  });

  it('is refused when it is to be Base64 and is not', async () => {
    await expect(new SecretKeyProvider(() => 'no Base64', 'base64').current()).rejects.toThrow(
      'secretKey is not Base64',
    );
    for (const key of ['c2VjcmV0', 'c2Vj_-V0cw', 'c2VjcmV0cw=='])
      expect((await new SecretKeyProvider(() => key, 'base64').current()).reveal()).toBe(key);
  });
});
