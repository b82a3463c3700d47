import { Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import { DebateSpaceErasures, type ErasureStatus } from 'nestjs-debate-space';

const UNUSED = `SELECT uid FROM accounts WHERE last_login < now() - interval '2 years'`;

@Injectable()
export class RetentionJob {
  constructor(
    private readonly pool: Pool,
    private readonly erasures: DebateSpaceErasures,
  ) {}

  /** Call it from your scheduler, on one instance. */
  async run(today = new Date()): Promise<ErasureStatus | undefined> {
    const { rowCount } = await this.pool.query(`${UNUSED} LIMIT 1`);
    if (rowCount === 0) return undefined; // requestMany refuses a list without a user
    const reference = `retention-${today.toISOString().slice(0, 10)}`;
    return this.erasures.requestMany(this.#unused(), {
      mode: 'anonymize',
      reference,
      requestedBy: 'retention',
    });
  }

  async *#unused(): AsyncGenerator<string> {
    const client = await this.pool.connect();
    try {
      await client.query('BEGIN READ ONLY');
      await client.query(`DECLARE unused NO SCROLL CURSOR FOR ${UNUSED}`);
      for (;;) {
        const { rows } = await client.query<{ uid: string }>('FETCH 1000 FROM unused');
        if (rows.length === 0) break;
        for (const { uid } of rows) yield uid;
      }
    } finally {
      await client.query('ROLLBACK').finally(() => {
        client.release();
      });
    }
  }
}
