import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, ServerResponse, type RequestListener, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Containment } from '../async/containment.js';
import { type MaybePromise } from '../async/promises.js';
import { beforeAnswer, gateAnswersOf, installGate } from './answer-gate.js';

let server: Server | undefined;
let handler: RequestListener;
beforeEach(() => {
  handler = () => undefined;
});
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

/** What a client gets for a request, byte for byte, but for the date. */
async function answerTo(method: string, listener: RequestListener): Promise<string> {
  handler = listener;
  server ??= createServer((request, response) => {
    handler(request, response);
  }).listen(0, '127.0.0.1');
  if (!server.listening) await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(`${method} / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
  return (await text(socket)).replace(/^Date: .*$/m, 'Date: *');
}

const containment = new Containment((where) => {
  throw new Error(where);
});

function before(response: ServerResponse, answering: () => MaybePromise<unknown>, timeoutMs = 10_000): void {
  beforeAnswer(response, { containment, timeoutMs, answering });
}

/** The prototype of the responses of an app. */
const gatedPrototype = Object.create(ServerResponse.prototype) as object;
gateAnswersOf(gatedPrototype);

/** As an app does with each response. */
function serve(response: ServerResponse): void {
  Object.setPrototypeOf(response, gatedPrototype);
}

/** A promise of the next turns of the event loop. */
const soon = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
};

const isSet = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
};

interface Answer {
  readonly name: string;
  readonly method?: string;
  readonly send: (response: ServerResponse, seen: unknown[]) => void;
}

const ANSWERS: readonly Answer[] = [
  { name: 'no body', send: (response) => response.end() },
  { name: 'a text', send: (response) => response.end('bye, Zoë') },
  { name: 'a text in an encoding', send: (response) => response.end('Zoë', 'latin1') },
  { name: 'bytes', send: (response) => response.end(Buffer.from([1, 2, 3])) },
  { name: 'JSON with a length', send: (response) => response.setHeader('content-length', 2).end('{}') },
  { name: 'no content', send: (response) => response.writeHead(204).end() },
  { name: 'a redirect', send: (response) => response.writeHead(302, { location: '/' }).end() },
  { name: 'a head without a body', method: 'HEAD', send: (response) => response.end('bye') },
  {
    name: 'a stream',
    send: (response) => {
      response.write('good ');
      response.end('bye');
    },
  },
  {
    name: 'trailers',
    send: (response) => {
      response.writeHead(200, { trailer: 'x-sum' });
      response.write('bye');
      response.addTrailers({ 'x-sum': '1' });
      response.end();
    },
  },
  { name: 'an end with a callback', send: (response, seen) => response.end('bye', () => seen.push('ended')) },
  {
    name: 'a second end',
    send: (response, seen) => {
      response.on('error', (error: NodeJS.ErrnoException) => seen.push(error.code));
      response.end('bye');
      response.end('again', (error?: NodeJS.ErrnoException) => seen.push(error?.code));
    },
  },
  {
    name: 'what comes after the end',
    send: (response, seen) => {
      response.on('error', (error: NodeJS.ErrnoException) => seen.push(error.code));
      response.end('bye');
      seen.push(response.headersSent, response.writableEnded);
      seen.push(isSet(() => response.setHeader('x-late', '1')));
      seen.push(isSet(() => response.writeHead(404)));
      seen.push(response.write('again'));
    },
  },
  ...(['destroy', 'destroySoon', 'end'] as const).map((close) => ({
    name: `a connection that the host closes after it (${close})`,
    send: (response: ServerResponse): void => {
      response.end('bye');
      response.socket?.[close]();
    },
  })),
  {
    name: 'an error after it, as Express answers it',
    send: (response) => {
      response.writeHead(302, { location: '/bye' }).end();
      response.req.destroy();
    },
  },
  ...[
    { what: 'adds a header', head: true },
    { what: 'only lengthens the body', head: false },
  ].map(({ what, head }) => ({
    name: `a wrapper of the host that ${what}`,
    send: (response: ServerResponse): void => {
      const end = response.end.bind(response) as (text: string) => ServerResponse;
      response.end = ((text: string) => {
        if (head) response.setHeader('x-footer', 'yes');
        return end(`${text}, and a footer`);
      }) as typeof response.end;
      response.end('bye');
    },
  })),
  {
    name: 'a body that cannot be sent',
    send: (response, seen) => {
      seen.push(isSet(() => response.end(1 as never)));
      response.end('a text');
    },
  },
];

describe.each(ANSWERS)('an answer with $name', ({ method = 'GET', send }) => {
  const kinds: readonly { readonly name: string; readonly gate: (response: ServerResponse) => void }[] = [
    { name: 'a gate', gate: installGate },
    {
      name: 'work that is done at once',
      gate: (response) => {
        before(response, () => undefined);
      },
    },
    {
      name: 'work that takes a while',
      gate: (response) => {
        before(response, soon);
      },
    },
    { name: 'the gate of an app', gate: serve },
    {
      name: 'work that takes a while, and the gate of an app',
      gate: (response) => {
        serve(response);
        before(response, soon);
      },
    },
  ];
  it.each(kinds)('is the same byte for byte behind $name', async ({ gate }) => {
    const run = async (prepare: (response: ServerResponse) => void): Promise<unknown> => {
      const seen: unknown[] = [];
      const answer = await answerTo(method, (_, response) => {
        prepare(response);
        send(response, seen);
      });
      return { answer, seen };
    };
    expect(await run(gate)).toEqual(await run(() => undefined));
  });
});

describe('an answer behind a gate that a wrapper of the host is behind', () => {
  it.each([true, false])('is the same as without a gate (the wrapper adds a header: %s)', async (adds) => {
    const run = (gate: (response: ServerResponse) => void): Promise<string> =>
      answerTo('GET', (_, response) => {
        const end = response.end.bind(response) as (text: string) => ServerResponse;
        response.end = ((text: string) => {
          if (adds) response.setHeader('x-footer', 'yes');
          return end(`${text}, and a footer`);
        }) as typeof response.end;
        gate(response);
        response.end('bye');
      });
    const recorded: boolean[] = [];
    const gated = await run((response) => {
      before(response, async () => {
        await soon();
        recorded.push(true);
      });
    });
    expect(gated).toBe(await run(() => undefined));
    expect(recorded).toEqual([true]);
  });
});

describe('an answer', () => {
  it('closes its connection when its end fails after the wait', async () => {
    const faults: string[] = [];
    const reporting = new Containment((where) => faults.push(where));
    const answer = await answerTo('GET', (_, response) => {
      beforeAnswer(response, { containment: reporting, timeoutMs: 10_000, answering: soon });
      response.strictContentLength = true;
      response.setHeader('content-length', 99);
      response.end('bye');
    });
    expect(answer).toBe('');
    expect(faults).toEqual(['response.end']);
  });

  it('leaves after the work that has to be done before', async () => {
    const order: string[] = [];
    await answerTo('GET', (_, response) => {
      before(response, async () => {
        await soon();
        order.push('recorded');
      });
      response.on('finish', () => order.push('left'));
      response.end('bye');
      order.push('the handler goes on');
    });
    expect(order).toEqual(['the handler goes on', 'recorded', 'left']);
  });

  it.each([
    { gate: 'of its own', prepare: installGate },
    { gate: 'of an app', prepare: serve },
  ])('does not leave by a write before the work is done, at a gate $gate', async ({ prepare }) => {
    const written: (number | undefined)[] = [];
    const answer = await answerTo('GET', (_, response) => {
      prepare(response);
      before(response, async () => {
        await soon();
        written.push(response.socket?.bytesWritten);
      });
      written.push(response.write('good ') ? 0 : NaN);
      response.end('bye');
    });
    expect(written).toEqual([0, 0]);
    expect(answer).toMatch(/good [^]*bye/);
  });

  it('leaves after all the work that has to be done before', async () => {
    const order: string[] = [];
    await answerTo('GET', (_, response) => {
      serve(response);
      for (const name of ['first', 'second'])
        before(response, async () => {
          await soon();
          if (name === 'second') await soon();
          order.push(name);
        });
      response.on('finish', () => order.push('left'));
      response.end('bye');
      before(response, () => order.push('too late'));
    });
    expect(order).toEqual(['first', 'second', 'left']);
  });

  it('leaves in the same tick when the work is synchronous', async () => {
    let isHeld: boolean | undefined;
    await answerTo('GET', (_, response) => {
      before(response, () => 'done');
      response.end('bye');
      isHeld = Object.hasOwn(response, 'writableEnded');
    });
    expect(isHeld).toBe(false);
  });

  it('leaves without work that does not come to its end', async () => {
    const answer = await answerTo('GET', (_, response) => {
      before(response, () => new Promise(() => undefined), 20);
      response.end('bye');
    });
    expect(answer).toMatch(/bye$/);
  });

  it('leaves when the work fails', async () => {
    const faults: string[] = [];
    const reporting = new Containment((where) => faults.push(where));
    const answer = await answerTo('GET', (_, response) => {
      const answering = (): never => {
        throw new Error('of the store');
      };
      beforeAnswer(response, { containment: reporting, timeoutMs: 10_000, answering });
      response.end('bye');
    });
    expect(answer).toMatch(/bye$/);
    expect(faults).toEqual(['response.end']);
  });
});

it('the gate of an app is taken away by the one that has put it there', () => {
  const prototype = Object.create(ServerResponse.prototype) as object;
  const [takeAway, ofAnother] = [gateAnswersOf(prototype), gateAnswersOf(prototype)];
  ofAnother();
  expect(Object.hasOwn(prototype, 'end')).toBe(true);
  takeAway();
  expect(Reflect.ownKeys(prototype)).toEqual([]);
});
