import session from 'express-session';
import type { Browser } from '../browser/browser.js';
import type { EndingHost, EndingStack, Staging } from './endings.js';
import { logIn, SessionHost, uidIn } from '../hosts/session-host.js';
import { destroySession, onlySid } from '../hosts/session-jobs.js';
import { socketEndings, type SocketContext, type SocketEnding } from './socket-endings.js';
import { socketKinds, type Acting, type Client, type SocketKind } from '../hosts/socket-kinds.js';

async function start(
  kind: SocketKind,
  { act, debateSpace, trace }: Staging<SocketContext>,
  ending: SocketEnding,
): Promise<EndingHost> {
  const store = trace.record(new session.MemoryStore(), ['set', 'destroy', 'clear']); // each poll touches
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
    act: destroySession,
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
      await ending.job?.(store, sid);
      return () => {
        client.close();
      };
    },
  };
}

/** express-session behind sockets. */
export const socketStacks: readonly EndingStack<SocketContext>[] = socketKinds.map((kind) => ({
  name: `Sockets, ${kind.name}`,
  endings: socketEndings,
  start: (staging, ending: SocketEnding) => start(kind, staging, ending),
}));
