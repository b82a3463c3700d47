import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { postgresServer, startPostgres, type RunningPostgres } from 'debate-space-fixtures/postgres.js';
import { redisServer, startRedis, type RunningRedis } from 'debate-space-fixtures/redis.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { storesInPostgres, storesInRedis } from 'debate-space-fixtures/server-store-kinds.js';
import { callChecks } from 'debate-space-fixtures/watched-store/calls.js';
import { derivedChecks } from 'debate-space-fixtures/watched-store/derived.js';
import { localKinds, remoteKinds, type ContractKind } from 'debate-space-fixtures/watched-store/kinds.js';
import { orderChecks } from 'debate-space-fixtures/watched-store/order.js';
import { closeChecks, patchChecks } from 'debate-space-fixtures/watched-store/patches.js';
import { requestChecks } from 'debate-space-fixtures/watched-store/requests.js';
import { shapeChecks } from 'debate-space-fixtures/watched-store/shape.js';
import { observed, type Check } from 'debate-space-fixtures/watched-store/watched.js';

const scene = scenario();

/** A host that watches its store can tell no difference to one that does not. */
function contract(kind: ContractKind): void {
  const compare = <T>(title: string, checks: readonly Check<T>[]): void => {
    const known = checks.filter(
      ({ needs = [], requests, suits }) =>
        !needs.some((name) => kind.lacks?.includes(name)) &&
        (!requests || kind.requests) &&
        (suits?.(kind) ?? true),
    );
    if (known.length === 0) return;
    it.each(known)(`${title}: $name`, async (check) => {
      const plain = await observed(kind, check, scene.service, false);
      expect(await observed(kind, check, scene.service, true)).toBe(plain);
    });
  };
  compare('it', shapeChecks);
  compare('a call', callChecks);
  compare('in a request', requestChecks);
  compare('patched later', patchChecks);
  compare('derived', derivedChecks);
  compare('in order', orderChecks);
  compare('after the app has closed', closeChecks);
}

describe.each(localKinds)('a watched store: $name', contract);

redisServer.describe('a watched store, with Redis:', () => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    await redis.stop();
  });
  describe.each(remoteKinds(storesInRedis, () => redis.url))('$name', contract);
});

postgresServer.describe('a watched store, with Postgres:', () => {
  let postgres: RunningPostgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(async () => {
    await postgres.stop();
  });
  describe.each(remoteKinds(storesInPostgres, () => postgres.connectionString))('$name', contract);
});
