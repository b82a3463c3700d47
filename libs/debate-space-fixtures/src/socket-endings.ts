import { once } from 'node:events';
import type { Request, RequestHandler } from 'express';
import session, { type Store } from 'express-session';
import expressWs from 'express-ws';
import { Server } from 'socket.io';
import { io, type Socket } from 'socket.io-client';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { WebSocket } from 'ws';
import type { Browser } from './browser.js';
import type { Ending, EndingHost, EndingStack } from './endings.js';
import { called, jobs, onlySid } from './session-jobs.js';
import { SessionHost, logIn, uidIn } from './session-host.js';

/** What a handler of a socket has: the request by which the socket came, with its session. */
interface SocketContext {
  readonly request: Request;
  readonly store: Store;
  readonly browser: Browser;
  /** Closes the socket from the client, and waits until the server has seen it. */
  readonly disconnect: () => Promise<void>;
}

interface SocketEnding extends Omit<Ending<SocketContext>, 'path'> {
  /** In place of a handler: what happens to the session afterwards, when nothing but the socket is open. */
  readonly job?: (store: Store, sid: string) => unknown;
}

const destroy = ({ request }: SocketContext): Promise<void> =>
  called((done) => request.session.destroy(done));
const regenerate = ({ request }: SocketContext): Promise<void> =>
  called((done) => request.session.regenerate(done));
const save = ({ request }: SocketContext): Promise<void> => called((done) => request.session.save(done));
const reload = ({ request }: SocketContext): Promise<void> => called((done) => request.session.reload(done));
const nothing = (): void => undefined;

const endings: readonly SocketEnding[] = [
  { name: 'session.destroy in a handler', ends: true, act: destroy },
  {
    name: 'session.destroy twice in a handler',
    ends: true,
    act: async (context) => {
      const { session } = context.request;
      await destroy(context);
      await called((done) => session.destroy(done));
    },
  },
  {
    name: 'session.destroy in a handler, and then the socket disconnects',
    ends: true,
    act: async (context) => {
      await destroy(context);
      await context.disconnect();
    },
  },
  { name: 'regenerated in a handler', ends: true, act: regenerate },
  {
    name: 'regenerated for the same user in a handler, whose browser never gets the cookie',
    ends: true,
    act: async (context) => {
      await regenerate(context);
      await logIn(context.request, 'alice');
      await save(context);
    },
  },
  {
    name: 'delete session.user in a handler, saved',
    ends: true,
    act: async (context) => {
      delete context.request.session.user;
      await save(context);
    },
  },
  {
    name: 'session.user overwritten with another user in a handler, saved',
    ends: true,
    act: async (context) => {
      context.request.session.user = { uid: 'bob' };
      await save(context);
    },
  },
  {
    name: 'destroyed through HTTP while the socket is open',
    ends: true,
    act: async ({ browser }) => {
      await browser.post('/act');
    },
  },
  {
    name: 'destroyed through HTTP when the socket has disconnected',
    ends: true,
    act: async ({ browser, disconnect }) => {
      await disconnect();
      await browser.post('/act');
    },
  },
  {
    name: 'destroyed in a handler and through HTTP at the same time',
    ends: true,
    act: async (context) => {
      await Promise.all([destroy(context), context.browser.post('/act')]);
    },
  },
  {
    name: 'store.destroy in a handler',
    ends: true,
    act: ({ request, store }) => jobs.destroy(store, request.sessionID),
  },
  { name: 'store.destroy by a job while the socket is open', ends: true, act: nothing, job: jobs.destroy },
  { name: 'store.clear by a job while the socket is open', ends: true, act: nothing, job: jobs.clear },
  {
    name: 'the user is removed by a job while the socket is open',
    ends: true,
    act: nothing,
    job: jobs.removeUser,
  },
  { name: 'a handler that leaves the session alone', ends: false, act: nothing },
  { name: 'the socket disconnects', ends: false, act: ({ disconnect }) => disconnect() },
  {
    name: 'touch in a handler, saved',
    ends: false,
    act: (context) => {
      context.request.session.touch();
      return save(context);
    },
  },
  { name: 'reload in a handler', ends: false, act: reload },
  { name: 'an ordinary save in a handler', ends: false, act: save },
  {
    name: 'saved in a handler when the socket has disconnected',
    ends: false,
    act: async (context) => {
      await context.disconnect();
      await save(context);
    },
  },
];

/** A kind of sockets. */
interface SocketKind {
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
type Acting = (request: Request, gone: Promise<unknown>) => Promise<void>;
interface Client {
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

const overExpressWs: SocketKind = {
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

async function start(
  kind: SocketKind,
  act: (context: SocketContext) => unknown,
  ending: SocketEnding | undefined,
  debateSpace: DebateSpaceModuleOptions | undefined,
): Promise<EndingHost> {
  const store = new session.MemoryStore();
  const sessions = session({ secret: 'only for tests', resave: false, saveUninitialized: false, store });
  let current: { readonly browser: Browser; readonly client: Client } | undefined;
  let sid = '';
  const acting: Acting = async (request, gone) => {
    if (!current) throw new Error('nobody has connected');
    const { browser, client } = current;
    const disconnect = async (): Promise<void> => {
      client.close();
      await gone;
    };
    await act({ request, store, browser, disconnect });
  };
  const host = await SessionHost.start({
    store,
    debateSpace,
    act: (request) => called((done) => request.session.destroy(done)),
    login: {
      mount: (app) => {
        if (!kind.prepare) app.use(sessions);
        kind.prepare?.({
          app: app.getHttpAdapter().getInstance() as object,
          server: app.getHttpServer(),
          sessions,
          acting,
        });
      },
      logIn: (request, _, uid) => logIn(request, uid),
      uidIn: (request) => uidIn(request),
    },
  });
  const close = kind.serve?.(host, sessions, acting);
  return {
    app: host.app,
    url: host.url,
    stop: async () => {
      (host.app.getHttpServer() as { closeAllConnections(): void }).closeAllConnections();
      await close?.();
      await host.stop();
    },
    reach: async (browser) => {
      const client = await kind.connect(host.url, browser);
      current = { browser, client };
      sid = await onlySid(store);
      await client.act();
      await ending?.job?.(store, sid);
      return () => {
        client.close();
      };
    },
  };
}

/** express-session behind the sockets of socket.io and express-ws, as their documentation shows it. */
export const socketStacks: readonly EndingStack<SocketContext>[] = [
  socketIo('polling'),
  socketIo('websocket'),
  overExpressWs,
].map((kind) => ({
  name: `Sockets, ${kind.name}`,
  endings,
  start: (act, { name }, debateSpace) =>
    start(
      kind,
      act,
      endings.find((ending) => ending.name === name),
      debateSpace,
    ),
}));
