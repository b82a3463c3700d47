import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpRequest } from './exchange.js';
import { UndiciSender } from './undici-sender.js';

describe('the first requests of an UndiciSender, which wait for undici', () => {
  let server: Server;
  let connections = 0;
  let sender: UndiciSender;
  let request: HttpRequest;
  beforeEach(async () => {
    connections = 0;
    server = createServer((_, response) => setTimeout(() => response.end(), 20));
    server.on('connection', () => (connections += 1)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    request = { operation: 'logoutUser', method: 'GET', url: `http://127.0.0.1:${port}/`, headers: {} };
    sender = new UndiciSender(1_000);
  });
  afterEach(() => {
    sender.close();
    server.closeAllConnections();
    server.close();
  });

  it('share their connections with the later ones', async () => {
    const { signal } = new AbortController();
    for (let round = 0; round < 3; round += 1)
      await Promise.all([sender.send(request, signal), sender.send(request, signal)]);
    expect(connections).toBe(2);
  });

  it('are not sent when they are aborted meanwhile', async () => {
    const abort = new AbortController();
    const reply = sender.send(request, abort.signal);
    abort.abort();
    await expect(reply).rejects.toMatchObject({ sent: false });
    expect(connections).toBe(0);
  });
});
