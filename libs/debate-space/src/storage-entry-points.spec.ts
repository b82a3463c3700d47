import { expect, it } from '@jest/globals';
import { StorageError } from './errors.js';
import { postgresMigration, postgresStorage } from './postgres.js';
import { redisStorage } from './redis.js';

const context = {
  namespace: 'app',
  families: ['a'],
  contained: (work: () => void): void => {
    work();
  },
};

/** What the storage sends while it is opened, until its server refuses. */
async function sentBy(open: (send: (...words: unknown[]) => Promise<never>) => unknown): Promise<string> {
  const sent: unknown[] = [];
  const refuse = (...words: unknown[]): Promise<never> => {
    sent.push(words);
    return Promise.reject(new Error('away'));
  };
  await expect(Promise.resolve(open(refuse))).rejects.toMatchObject({ name: 'StorageError' });
  return JSON.stringify(sent);
}

// What is stored under these names must be found by every later version.
it.each([
  [undefined, 'debate-space:{app}:values'],
  ['host', 'host:{app}:values'],
])('the keys in Redis begin with the prefix, here %s', async (prefix, key) => {
  expect(await sentBy((sendCommand) => redisStorage({ sendCommand, prefix }).open(context))).toContain(key);
});

it.each([
  [undefined, '"public"."debate_space"'],
  ['app.outbox', '"app"."outbox"'],
])('the table in Postgres has the given name, here %s', async (table, name) => {
  const sent = await sentBy((query) => postgresStorage({ query, table }).open(context));
  expect(sent).toContain(JSON.stringify(name).slice(1, -1));
  expect(postgresMigration({ table })).toContain(`CREATE TABLE IF NOT EXISTS ${name} `);
});

it('the migration refuses a name that is none, with the error of this package', () => {
  expect(postgresMigration()).toContain('CREATE TABLE IF NOT EXISTS "public"."debate_space" ');
  expect(() => postgresMigration({ table: 'a b' })).toThrow(StorageError);
});
