import type { Pool } from 'pg';
import type { PostgresQuery } from 'durable-jobs/postgres';

/** Connections of hosts, in the shapes of their drivers and ORMs, each over pg. */
export const postgresShapes: readonly {
  readonly name: string;
  query(pool: Pick<Pool, 'query'>): PostgresQuery;
}[] = [
  { name: 'pg, which returns an object', query: (pool) => (text, values) => pool.query(text, values) },
  {
    name: 'TypeORM, which returns the rows',
    query: (pool) => async (text, values) => (await pool.query(text, values)).rows as unknown,
  },
  {
    name: 'Prisma, which takes each value as an argument',
    query: (pool) => {
      const queryRawUnsafe = async (text: string, ...values: unknown[]) =>
        (await pool.query(text, values)).rows as unknown[];
      return (text, values) => queryRawUnsafe(text, ...values);
    },
  },
  {
    name: 'Drizzle or Knex, which put the statement together from pieces',
    query: (pool) => (text, values) => {
      const [first = '', ...pieces] = text.split(/\$\d/);
      if (pieces.length !== values.length) throw new Error('a value that is not used once');
      const statement = pieces.reduce((before, piece, n) => `${before}$${n + 1}${piece}`, first);
      return pool.query(statement, values);
    },
  },
];
