import { mysqlMigration } from 'nestjs-debate-space/mysql';

const prefix = 'app_';
const tables = ['jobs', 'references', 'sessions', 'rate', 'facts'];

/** What is used here of `Knex`. */
interface Knex {
  raw(sql: string): PromiseLike<unknown>;
}

/** For Postgres: `postgresMigration({ schema })`, and the schema must exist. */
export async function up(knex: Knex): Promise<void> {
  for (const statement of mysqlMigration({ prefix }).trimEnd().split('\n')) await knex.raw(statement);
}

export async function down(knex: Knex): Promise<void> {
  for (const table of tables) await knex.raw(`DROP TABLE ${prefix}debate_space_${table}`);
}
