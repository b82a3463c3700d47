import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Body, Controller, Get, Post, Req, type INestApplication } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { IoAdapter } from '@nestjs/platform-socket.io';
import {
  ConnectedSocket,
  SubscribeMessage,
  WebSocketGateway,
  type OnGatewayConnection,
  type OnGatewayDisconnect,
} from '@nestjs/websockets';
import type { Request, RequestHandler } from 'express';
import session from 'express-session';
import { DebateSpaceEvents } from 'nestjs-debate-space';
import { firstValueFrom } from 'rxjs';
import type { Server, Socket } from 'socket.io';
import { io } from 'socket.io-client';
import { Browser } from 'debate-space-fixtures/browser.js';
import { Latch } from 'debate-space-fixtures/latch.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import 'debate-space-fixtures/session-host.js'; // says what a session of the tests holds

const destroy = (request: Request): Promise<string> =>
  new Promise((resolve, reject) => {
    request.session.destroy((error: unknown) => {
      if (error) reject(new Error('the session was not destroyed', { cause: error }));
      else resolve('bye');
    });
  });

@Controller()
class AccountController {
  @Post('login')
  login(@Req() request: Request, @Body('uid') uid: string): string {
    request.session.user = { uid };
    return 'hello';
  }

  @Get('whoami')
  whoami(@Req() request: Request): string {
    return request.session.user?.uid ?? 'nobody';
  }

  @Post('logout')
  logout(@Req() request: Request): Promise<string> {
    return destroy(request);
  }
}

let left: Latch;

@WebSocketGateway()
class AccountGateway implements OnGatewayConnection, OnGatewayDisconnect {
  handleConnection(): void {
    // the session is loaded by the middleware of the engine
  }

  handleDisconnect(): void {
    left.open();
  }

  @SubscribeMessage('whoami')
  whoami(@ConnectedSocket() { request }: Socket): string {
    return (request as Request).session.user?.uid ?? 'nobody';
  }

  @SubscribeMessage('logout')
  logout(@ConnectedSocket() { request }: Socket): Promise<string> {
    return destroy(request as Request);
  }
}

/** As the documentation of socket.io shares sessions: https://socket.io/how-to/use-with-express-session */
class SessionIoAdapter extends IoAdapter {
  readonly #sessions: RequestHandler;

  constructor(app: INestApplication, sessions: RequestHandler) {
    super(app);
    this.#sessions = sessions;
  }

  override createIOServer(...args: Parameters<IoAdapter['createIOServer']>): Server {
    const server = super.createIOServer(...args);
    server.engine.use(this.#sessions);
    return server;
  }
}

interface Client {
  say(event: string): Promise<unknown>;
  /** Resolves when the server has seen it. */
  disconnect(): Promise<void>;
}

const scene = scenario();
let app: NestExpressApplication;
let browser: Browser;
const errors: unknown[] = [];
const note = (error: unknown): void => {
  errors.push(error);
};

beforeEach(async () => {
  left = new Latch();
  errors.length = 0;
  const sessions = session({
    secret: 'only for tests',
    resave: false,
    saveUninitialized: false,
    store: new session.MemoryStore(),
  });
  app = await scene.app({}, { controllers: [AccountController], providers: [AccountGateway] });
  app.use(sessions);
  app.useWebSocketAdapter(new SessionIoAdapter(app, sessions));
  await app.listen(0, '127.0.0.1');
  browser = new Browser(await app.getUrl());
  await browser.post('/login', { uid: 'alice' });
  process.on('uncaughtException', note).on('unhandledRejection', note);
});
afterEach(() => {
  process.off('uncaughtException', note).off('unhandledRejection', note);
});

async function connect(transport: string): Promise<Client> {
  const extraHeaders = { cookie: await browser.cookies() };
  const socket = io(await app.getUrl(), { transports: [transport], extraHeaders, forceNew: true });
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  return {
    say: (event) => new Promise((resolve) => socket.emit(event, resolve)),
    disconnect: async () => {
      socket.close();
      await left.passed;
    },
  };
}

describe.each(['polling', 'websocket'])(
  'a host that shares its session with socket.io over %s',
  (transport) => {
    it('lives on when a client of a logged-in user disconnects, and nothing is reported', async () => {
      const client = await connect(transport);
      expect(await client.say('whoami')).toBe('alice');
      await client.disconnect();
      expect(await browser.get('/whoami')).toBe('alice');
      expect({ errors, logouts: await scene.logouts() }).toEqual({ errors: [], logouts: [] });
    });

    it('reports a logout over HTTP when the client has disconnected', async () => {
      const client = await connect(transport);
      await client.disconnect();
      const ended = firstValueFrom(app.get(DebateSpaceEvents).events$);
      await browser.post('/logout');
      expect(await ended).toMatchObject({ type: 'session-ended', uid: 'alice' });
      expect({ errors, logouts: await scene.logouts() }).toEqual({ errors: [], logouts: ['alice'] });
    });

    it('reports a logout over HTTP while the client is connected', async () => {
      const client = await connect(transport);
      const ended = firstValueFrom(app.get(DebateSpaceEvents).events$);
      await browser.post('/logout');
      expect(await ended).toMatchObject({ type: 'session-ended', uid: 'alice' });
      await client.disconnect();
      expect({ errors, logouts: await scene.logouts() }).toEqual({ errors: [], logouts: ['alice'] });
    });

    it('reports a logout in a handler of a message', async () => {
      const client = await connect(transport);
      const ended = firstValueFrom(app.get(DebateSpaceEvents).events$);
      expect(await client.say('logout')).toBe('bye');
      expect(await browser.get('/whoami')).toBe('nobody');
      expect(await ended).toMatchObject({ type: 'session-ended', uid: 'alice' });
      await client.disconnect();
      expect({ errors, logouts: await scene.logouts() }).toEqual({ errors: [], logouts: ['alice'] });
    });
  },
);
