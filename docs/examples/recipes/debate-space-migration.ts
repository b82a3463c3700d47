import { postgresMigration } from 'nestjs-debate-space/postgres';

/** `implements MigrationInterface` */
export class DebateSpace1760000000000 {
  async up(runner: { query(sql: string): Promise<unknown> }): Promise<void> {
    await runner.query('CREATE SCHEMA IF NOT EXISTS app');
    await runner.query(postgresMigration({ table: 'app.debate_space' }));
  }

  async down(runner: { query(sql: string): Promise<unknown> }): Promise<void> {
    await runner.query('DROP FUNCTION app.debate_space_commit_v1(text, text)');
    await runner.query('DROP TABLE app.debate_space');
  }
}
