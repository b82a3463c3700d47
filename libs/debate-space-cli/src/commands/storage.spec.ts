import { describe, expect, it } from '@jest/globals';
import { mysqlMigration } from 'nestjs-debate-space/mysql';
import { postgresMigration } from 'nestjs-debate-space/postgres';
import { run } from '../testing/command-line.js';

describe('storage migration', () => {
  it.each([
    ['postgres', 'debate_space_jobs', 'CREATE TABLE IF NOT EXISTS "public".debate_space_jobs ('],
    [
      'postgres --schema debate',
      'debate_space_jobs',
      'CREATE TABLE IF NOT EXISTS "debate".debate_space_jobs (',
    ],
    ['mysql', 'debate_space_facts', 'CREATE TABLE IF NOT EXISTS debate_space_facts ('],
    ['mysql --prefix app_', 'debate_space_facts', 'CREATE TABLE IF NOT EXISTS app_debate_space_facts ('],
    ['sqlite', 'debate_space_rate', 'CREATE TABLE IF NOT EXISTS debate_space_rate ('],
  ])('prints the SQL for %s, with the table %s', async (dialect, _, statement) => {
    const { code, out, err } = await run(`storage migration --dialect ${dialect}`);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain(statement);
    expect(out).toMatch(/;\n$/);
  });

  it('prints the same as the functions of the plugin return', async () => {
    const { out } = await run('storage migration --dialect postgres --schema debate');
    expect(out).toBe(postgresMigration({ schema: 'debate' }));
    const { out: mysql } = await run('storage migration --dialect mysql --prefix app_');
    expect(mysql).toBe(mysqlMigration({ prefix: 'app_' }));
  });

  it('answers as JSON', async () => {
    const { code, out } = await run('storage migration --dialect mysql --json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({ dialect: 'mysql', sql: expect.stringContaining('ENGINE=InnoDB') });
  });

  it.each([
    ['storage migration', 2],
    ['storage migration --dialect oracle', 2],
    ['storage migration --dialect mysql --schema debate', 2],
    ['storage migration --dialect sqlite --prefix app_', 2],
    ['storage migration --dialect postgres --schema a;b', 3],
    ['storage migration --dialect mysql --prefix a;b', 3],
  ])('is refused: %s', async (command, code) => {
    const refused = await run(command);
    expect(refused).toMatchObject({ code, out: '' });
    expect(refused.err).not.toBe('');
  });
});
