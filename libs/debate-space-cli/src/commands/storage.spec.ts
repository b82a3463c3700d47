import { describe, expect, it } from '@jest/globals';
import { mysqlMigration } from 'nestjs-debate-space/mysql';
import { postgresMigration } from 'nestjs-debate-space/postgres';
import { run } from '../testing/command-line.js';

describe('storage migration', () => {
  it('prints the SQL that the functions of the plugin return', async () => {
    const { code, out, err } = await run('storage migration --dialect postgres --schema debate');
    expect([code, out, err]).toEqual([0, postgresMigration({ schema: 'debate' }), '']);
    const { out: mysql } = await run('storage migration --dialect mysql --prefix app_');
    expect(mysql).toBe(mysqlMigration({ prefix: 'app_' }));
  });

  it('answers as JSON', async () => {
    const { code, out } = await run('storage migration --dialect sqlite --json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({ dialect: 'sqlite', sql: expect.stringMatching(/^CREATE TABLE/) });
  });

  it.each([
    ['storage migration', 2],
    ['storage migration --dialect oracle', 2],
    ['storage migration --dialect mysql --schema debate', 2],
    ['storage migration --dialect sqlite --prefix app_', 2],
    ['storage migration --dialect postgres --schema a;b', 3],
  ])('is refused: %s', async (command, code) => {
    expect(await run(command)).toMatchObject({ code, out: '', err: expect.stringMatching(/\w/) });
  });
});
