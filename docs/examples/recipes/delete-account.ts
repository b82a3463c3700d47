import type { DebateSpaceErasures } from 'nestjs-debate-space';
import type { Pool } from 'pg';

export async function deleteAccount(uid: string, pool: Pool, erasures: DebateSpaceErasures): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('DELETE FROM account WHERE uid = $1', [uid]);
    await erasures.request({ uid, mode: 'delete', transaction: client });
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}
