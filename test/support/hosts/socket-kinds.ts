import { once } from 'node:events';
import type { Request, RequestHandler } from 'express';
import expressWs from 'express-ws';
import { Server } from 'socket.io';
import { io, type Socket } from 'socket.io-client';
import { WebSocket } from 'ws';
import type { Browser } from '../browser/browser.js';
import type { SessionHost } from './session-host.js';

/** A kind of sockets. */
export interface SocketKind {
  readonly name: string;
  /** Before Nest's server is there, as hosts do it where it has to be. */
  readonly prepare?: (host: Preparation) => void;
  readonly serve?: (host: SessionHost, sessions: RequestHandler, acting: Acting) => () => Promise<void>;
  readonly connect: (url: string, browser: Browser) => Promise<Client>;
}
interface Preparation {
  readonly app: object;
  readonly server: object;
  readonly sessions: RequestHandler;
  readonly acting: Acting;
}
export type Acting = (request: Request, gone: Promise<unknown>) => Promise<void>;
export interface Client {
  /** Has the act happen, and waits for the answer or for the end of the connection. */
  act(): Promise<void>;
  close(): void;
}

const socketIo = (transport: 'polling' | 'websocket'): SocketKind => ({
  name: `socket.io, ${transport}`,
  serve: (host, sessions, acting) => {
    const server = new Server(host.app.getHttpServer(), { transports: [transport] });
    server.engine.use(sessions); // as its documentation has it
    server.on('connection', (socket) => {
      const gone = once(socket, 'disconnect');
      socket.on('act', (done: () => void) => {
        void acting(socket.request as Request, gone).finally(done);
      });
    });
    return () => server.close();
  },
  connect: async (url, browser) => {
    const extraHeaders = { cookie: await browser.cookies() };
    const socket: Socket = io(url, {
      transports: [transport],
      extraHeaders,
      reconnection: false,
      forceNew: true,
    });
    await new Promise<void>((resolve, reject) =>
      socket.once('connect', resolve).once('connect_error', reject),
    );
    return {
      act: async () => {
        const gone = new Promise((resolve) => socket.once('disconnect', resolve));
        await Promise.race([gone, new Promise((resolve) => socket.emit('act', resolve))]);
      },
      close: () => {
        socket.close();
      },
    };
  },
});

const expressWsKind: SocketKind = {
  name: 'express-ws, WebSocket',
  prepare: ({ app, server, sessions, acting }) => {
    const { app: withSockets } = expressWs(app as never, server as never);
    withSockets.use(sessions);
    withSockets.ws('/socket', (socket, request) => {
      const gone = once(socket, 'close');
      socket.on('message', () => {
        void acting(request, gone).finally(() => {
          if (socket.readyState === 1) socket.send('done');
        });
      });
    });
  },
  connect: async (url, browser) => {
    const headers = { cookie: await browser.cookies() };
    const socket = new WebSocket(`${url.replace('http', 'ws')}/socket`, { headers });
    await once(socket, 'open');
    return {
      act: async () => {
        const answered = Promise.race([once(socket, 'message'), once(socket, 'close')]);
        socket.send('act');
        await answered;
      },
      close: () => {
        socket.close();
      },
    };
  },
};

/** The sockets of socket.io and express-ws, as their documentation shows them. */
export const socketKinds: readonly SocketKind[] = [socketIo('polling'), socketIo('websocket'), expressWsKind];
