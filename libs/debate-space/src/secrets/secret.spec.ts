import { describe, expect, it } from '@jest/globals';
import { format, inspect } from 'node:util';
import { Secret } from './secret.js';

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
