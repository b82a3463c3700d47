import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { SecretKeyProvider } from './secret.js';

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
      'secretKey cannot be had: the function failed (TypeError)',
    ],
    [
      'rejects',
      () => Promise.reject(new RangeError('planted-secret')),
      'secretKey cannot be had: the function failed (RangeError)',
    ],
    ['returns nothing', () => undefined, 'secretKey must be a string; the function returned undefined'],
    ['returns no text', () => '', 'secretKey must not be empty or have blanks around it'],
    ['returns a line', () => 'planted-secret\n', 'secretKey must not be empty or have blanks around it'],
    ['returns control characters', () => 'planted\0secret', 'secretKey must not have control characters'],
  ])('is refused when the function %s, and never shown', async (_what, ask, message) => {
    const error: unknown = await new SecretKeyProvider(ask, 'utf8')
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
