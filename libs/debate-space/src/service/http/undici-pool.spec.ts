import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { dependencies } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as {
  dependencies: Record<string, string>;
};

describe('the release of undici that is installed', () => {
  it('still has the file of Pool, which its main file exports too', () => {
    const pool: unknown = require('undici/lib/dispatcher/pool.js');
    expect(pool).toBe((require('undici') as { Pool: unknown }).Pool);
    const { prototype } = pool as { prototype: object };
    for (const method of ['dispatch', 'destroy'] as const) expect(prototype).toHaveProperty(method);
  });

  it('may be any later one of its major version, so that security patches reach the hosts', () => {
    expect(dependencies.undici).toMatch(/^\^7\./);
  });
});
