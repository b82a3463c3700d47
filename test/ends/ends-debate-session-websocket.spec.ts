import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import {
  ConnectedSocket,
  MessageBody,
  SubscribeMessage,
  WebSocketGateway,
  WsException,
} from '@nestjs/websockets';
import { EndsDebateSession } from 'nestjs-debate-space';
import { once } from 'node:events';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';
import { scenario } from 'debate-space-fixtures/scenario.js';

interface Client {
  user?: { sub: string } | undefined;
  /** Of socket.io only. */
  data?: Pick<Client, 'user'>;
}

/** Where a host of that platform keeps the user of a connection: on the client, or in socket.io's `data`. */
const userPlace = (client: Client): Pick<Client, 'user'> => client.data ?? client;

@WebSocketGateway()
class LogoutGateway {
  @SubscribeMessage('login')
  login(@ConnectedSocket() client: Client, @MessageBody() sub: string): object {
    userPlace(client).user = { sub };
    return { event: 'answer', data: 'hello' };
  }

  @SubscribeMessage('logout')
  @EndsDebateSession()
  logout(@ConnectedSocket() client: Client): object {
    userPlace(client).user = undefined;
    return { event: 'answer', data: 'bye' };
  }

  @SubscribeMessage('logout-fails')
  @EndsDebateSession()
  logoutFails(): never {
    throw new WsException('still logged in');
  }

  @SubscribeMessage('logout-by-message')
  @EndsDebateSession({ uid: (_, context) => context.switchToWs().getData<string>() })
  logoutByMessage(): object {
    return { event: 'answer', data: 'bye' };
  }

  @SubscribeMessage('logout-badly-told')
  @EndsDebateSession({ uid: (client) => (client.nothing as { uid: string }).uid })
  logoutBadlyTold(): object {
    return { event: 'answer', data: 'bye' };
  }
}

/** A connection that sends one message after the other, each after the answer to the one before. */
interface Connection {
  say(event: string, data?: string): Promise<void>;
  close(): void;
}

const platforms = [
  {
    platform: 'ws',
    Adapter: WsAdapter,
    connect: async (url: string): Promise<Connection> => {
      const socket = new WebSocket(url.replace('http', 'ws'));
      await once(socket, 'open');
      return {
        say: async (event, data) => {
          socket.send(JSON.stringify({ event, data }));
          await once(socket, 'message');
        },
        close: () => {
          socket.close();
        },
      };
    },
  },
  {
    platform: 'socket.io',
    Adapter: IoAdapter,
    connect: async (url: string): Promise<Connection> => {
      const socket = io(url, { transports: ['websocket'] });
      await new Promise<void>((resolve) => socket.once('connect', resolve));
      return {
        say: async (event, data) => {
          const answered = new Promise((resolve) =>
            socket.once('answer', resolve).once('exception', resolve),
          );
          socket.emit(event, data);
          await answered;
        },
        close: () => {
          socket.close();
        },
      };
    },
  },
];

const scene = scenario();

describe.each(platforms)('@EndsDebateSession() on a gateway of $platform', ({ Adapter, connect }) => {
  const alice = ['login', 'alice'];
  const cases = [
    {
      name: 'ends the session of the client’s user when it succeeds',
      said: [alice, ['logout']],
      logouts: ['alice'],
    },
    { name: 'stays silent when it fails', said: [alice, ['logout-fails']], logouts: [] },
    { name: 'stays silent when nobody is logged in', said: [['logout'], alice], logouts: [] },
    {
      name: 'takes the uid from its uid function, which reads the message',
      said: [['logout-by-message', 'bob']],
      logouts: ['bob'],
    },
    {
      name: 'stays silent when its uid function throws, and the handler is left alone',
      said: [alice, ['logout-badly-told']],
      logouts: [],
    },
    {
      name: 'is a logout each time on one and the same connection',
      said: [alice, ['logout'], alice, ['logout']],
      logouts: ['alice', 'alice'],
    },
    {
      name: 'reports each user of one and the same connection',
      said: [alice, ['logout'], ['login', 'bob'], ['logout']],
      logouts: ['alice', 'bob'],
    },
  ];
  it.each(cases)('$name', async ({ said, logouts }) => {
    const app = await scene.app({}, { providers: [LogoutGateway] });
    app.useWebSocketAdapter(new Adapter(app));
    await app.listen(0, '127.0.0.1');
    const connection = await connect(await app.getUrl());
    for (const [event = '', data] of said) await connection.say(event, data);
    connection.close();
    const received = await scene.logouts();
    expect(received.toSorted()).toEqual(logouts.toSorted()); // several are under way at a time
  });
});
