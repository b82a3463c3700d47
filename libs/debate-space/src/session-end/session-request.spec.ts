import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse, type Server } from 'node:http';
import { Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { Containment } from './containment.js';
import { sessionRequest, type SessionRequest } from './session-request.js';

let server: Server;
beforeEach(() => {
  server = createServer();
});
afterEach(() => {
  server.close();
});

/** A request over a connection that is no socket, such as a tunnel's. */
async function request(): Promise<{
  readonly seen: SessionRequest;
  readonly response: ServerResponse;
  readonly leave: () => void;
}> {
  const [client, connection] = duplexPair();
  client.on('error', () => undefined).resume();
  server.emit('connection', connection);
  const asked = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
  client.write('GET / HTTP/1.1\r\nHost: host\r\n\r\n');
  const [native, response] = await asked;
  const seen = sessionRequest(Object.assign(native, { res: response }));
  if (!seen) throw new TypeError('a request has a response');
  return { seen, response, leave: () => connection.destroy() };
}

/** Resolves with how often the request was closed when the response has neither to finish nor to be closed any more. */
async function closings(seen: SessionRequest, act: () => void): Promise<number> {
  let closed = 0;
  const first = new Promise<void>((resolve) => {
    const listener = (): void => {
      closed += 1;
      resolve();
    };
    seen.onClose({ containment: new Containment(() => undefined), closed: listener });
  });
  act();
  await first;
  return closed;
}

describe('a request over a connection that is no socket', () => {
  it('is closed when its client leaves before the response', async () => {
    const { seen, leave } = await request();
    expect(await closings(seen, leave)).toBe(1);
    expect(seen.isClosed).toBe(true);
    expect(seen.isAnswered).toBe(false);
  });

  it('is closed once when its response has finished and the client leaves', async () => {
    const { seen, response, leave } = await request();
    let closed = 0;
    const listener = (): void => {
      closed += 1;
    };
    seen.onClose({ containment: new Containment(() => undefined), closed: listener });
    response.end('done');
    await once(response, 'finish');
    const { answeredAt } = seen;
    expect(closed).toBe(1);
    leave();
    if (!response.closed) await once(response, 'close');
    expect(closed).toBe(1);
    expect(seen.answeredAt).toBe(answeredAt);
    expect(seen.isAnswered).toBe(true);
  });
});

it('a request whose adapter has given it a connection that is no stream is closed once its response has ended', () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const nothing = (): undefined => undefined;
  const calls = { on: nothing, removeListener: nothing, cork: nothing, uncork: nothing, write: () => true };
  response.assignSocket({ ...calls, _writableState: {}, writable: true } as never);
  const seen = sessionRequest({ res: response });
  expect(seen?.isClosed).toBe(false);
  response.end('done');
  expect(seen?.isClosed).toBe(true);
});
