import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import pg from 'pg';
import { postgresStorage } from './postgres.js';

/** A message of Postgres's protocol: its type, its length, and its content. */
function message(type: string, ...content: readonly (string | number)[]): Buffer {
  const parts = content.map((part) =>
    typeof part === 'string' ? Buffer.from(`${part}\0`) : Buffer.from([part]),
  );
  const body = Buffer.concat(parts);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(4 + body.length);
  return Buffer.concat([Buffer.from(type), length, body]);
}
const authenticated = message('R', 0, 0, 0, 0);
const ready = Buffer.from([...Buffer.from('Z'), 0, 0, 0, 5, ...Buffer.from('I')]);
const terminated = message('E', 'SFATAL', 'C57P01', 'Mterminating connection', 0);

describe('a Postgres that cuts a connection as soon as it is open', () => {
  // One chunk, which a real server sends only now and then.
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(Buffer.concat([authenticated, ready, terminated])));
  });
  afterEach(() => {
    server.close();
  });

  it('fails the call, and leaves the process alone', async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'app', database: 'app' });
    pool.on('error', () => undefined);
    const opening = postgresStorage({ pool }).open('app');
    await expect(opening).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_STORAGE' });
    await pool.end();
  });
});
