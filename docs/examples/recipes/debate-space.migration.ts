import { postgresMigration } from 'nestjs-debate-space/postgres';

const schema = 'app';
const tables = ['jobs', 'references', 'sessions', 'rate', 'facts'];

/** For TypeORM: `implements MigrationInterface`. For MySQL and MariaDB: `mysqlMigration({ prefix })`, without the schema. */
export class DebateSpace1760000000000 {
  async up(runner: { query(sql: string): Promise<unknown> }): Promise<void> {
    await runner.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    for (const statement of postgresMigration({ schema }).trimEnd().split('\n'))
      await runner.query(statement);
  }

  async down(runner: { query(sql: string): Promise<unknown> }): Promise<void> {
    for (const table of tables) await runner.query(`DROP TABLE ${schema}.debate_space_${table}`);
  }
}
