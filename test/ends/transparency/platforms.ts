import type { Request, Response } from 'express';
import type { Store } from 'express-session';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ServerResponse } from 'node:http';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { FastifyHost } from 'debate-space-fixtures/fastify-host.js';
import { fastifyLogins } from 'debate-space-fixtures/fastify-logins.js';
import { SessionHost } from 'debate-space-fixtures/session-host.js';
import { ownStoreOfFastify, storeKinds, type Callback, type StoreKind } from './stores.js';

/** What handlers of both platforms do with a session. */
export interface HostSession {
  user?: { uid: string } | undefined;
  readonly cookie: object;
  save(callback?: Callback): unknown;
  destroy(callback?: Callback): unknown;
  regenerate(callback?: Callback): unknown;
  reload(callback?: Callback): unknown;
  touch(): unknown;
}

/** A request, as its handler sees it. */
export interface Handling {
  readonly request: { session: HostSession | null | undefined };
  readonly raw: ServerResponse;
  sid(): string | undefined;
  clearCookie(): void;
}

export type Handle = (handling: Handling) => unknown;

export interface PlatformHost {
  readonly url: string;
  stop(): Promise<void>;
}

export interface Platform {
  readonly name: string;
  readonly express: boolean;
  readonly unset?: 'destroy';
  readonly stores: readonly StoreKind[];
  readonly start: (
    store: object,
    handle: Handle,
    debateSpace: DebateSpaceModuleOptions | undefined,
  ) => Promise<PlatformHost>;
}

const onExpress =
  (unset?: 'destroy'): Platform['start'] =>
  (store, handle, debateSpace = [] as never) =>
    SessionHost.start({
      store: store as Store,
      unset,
      debateSpace,
      act: (request: Request, response: Response) =>
        handle({
          request: request,
          raw: response,
          sid: () => request.sessionID,
          clearCookie: () => {
            response.clearCookie('connect.sid');
          },
        }),
    });

const onFastify: Platform['start'] = (store, handle, debateSpace) =>
  FastifyHost.start({
    login: fastifyLogins.session(store as never),
    debateSpace,
    act: ({ request, reply }: { request: FastifyRequest; reply: FastifyReply }) =>
      handle({
        request: request as unknown as Handling['request'],
        raw: reply.raw,
        sid: () => (request.session as { sessionId?: string } | null)?.sessionId,
        clearCookie: () => {
          void reply.clearCookie('sessionId', { path: '/' });
        },
      }),
  });

export const platforms: readonly Platform[] = [
  { name: 'Express', express: true, stores: storeKinds, start: onExpress() },
  {
    name: "Express, unset: 'destroy'",
    express: true,
    unset: 'destroy',
    stores: storeKinds,
    start: onExpress('destroy'),
  },
  { name: 'Fastify', express: false, stores: [ownStoreOfFastify, ...storeKinds], start: onFastify },
];
