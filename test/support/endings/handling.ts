// What a handler of a host has in its hands, on either platform alike.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Request, Response } from 'express';
import type { FastifyContext } from '../hosts/fastify-host.js';
import { sessionOf } from '../hosts/fastify-logins.js';
import { logIn } from '../hosts/session-host.js';
import { called, type HandledStore } from '../hosts/session-jobs.js';

/** The session of a request. Its methods are those of `Handling`. */
export interface HandledSession {
  user?: { uid: string } | undefined;
  readonly cookie: { maxAge?: number | null; expires?: Date | null | undefined };
  touch(): unknown;
}

export interface Handling {
  readonly platform: 'express' | 'fastify';
  /** The path, with its query. */
  readonly url: string;
  readonly raw: ServerResponse;
  readonly store: HandledStore;
  /** The ids of the sessions of other browsers. */
  readonly others: readonly string[];
  /** Of now; another one after `regenerate`. */
  readonly session: HandledSession;
  readonly sid: string;
  destroy(session?: HandledSession): Promise<void>;
  /** Not waited for, and without a callback. */
  destroyBlindly(): void;
  regenerate(keys?: string[]): Promise<void>;
  save(): Promise<void>;
  reload(): Promise<void>;
  logIn(uid: string): unknown;
  /** That of passport. */
  logOut(options?: { readonly keepSessionInfo: boolean }): Promise<void>;
  /** `request.session = null` */
  drop(): void;
  header(name: string, value: string): void;
  /** Of the session, unless it has a name. On Fastify the session is dropped, or the cookie would be set again. */
  clearCookie(name?: string): void;
  setCookie(name: string, value: string): void;
  readonly cookieName: string;
  /** Takes the answer out of the platform's hands. */
  hijack(): void;
  /** Resolves when the response has closed; to be called before that. */
  closed(): Promise<unknown>;
  readonly express?: { readonly request: Request; readonly response: Response };
  readonly fastify?: FastifyContext;
}

interface Surroundings {
  readonly store: HandledStore;
  readonly others: () => readonly string[];
}

export function onExpress(request: Request, response: Response, { store, others }: Surroundings): Handling {
  const destroy = (session: HandledSession): Promise<void> =>
    called((done) => (session as unknown as Request['session']).destroy(done));
  return {
    platform: 'express',
    express: { request, response },
    url: request.originalUrl,
    raw: response,
    store,
    others: others(),
    cookieName: 'connect.sid',
    get session() {
      return request.session as unknown as HandledSession;
    },
    get sid() {
      return request.sessionID;
    },
    destroy: (session = request.session) => destroy(session),
    destroyBlindly: () => void request.session.destroy(undefined as never),
    regenerate: () => called((done) => request.session.regenerate(done)),
    save: () => called((done) => request.session.save(done)),
    reload: () => called((done) => request.session.reload(done)),
    logIn: (uid) => logIn(request, uid),
    logOut: (options) =>
      called((done) => {
        request.logout(options ?? {}, done);
      }),
    drop: () => void Object.assign(request, { session: null }),
    header: (name, value) => void response.setHeader(name, value),
    clearCookie: (name = 'connect.sid') => void response.clearCookie(name),
    setCookie: (name, value) => void response.cookie(name, value),
    hijack: () => undefined,
    closed: () => once(response, 'close'),
  };
}

export function onFastify(
  context: FastifyContext,
  {
    store,
    others,
    login,
  }: Surroundings & { readonly login: (context: FastifyContext, uid: string) => unknown },
): Handling {
  const { request, reply } = context;
  const session = (): HandledSession => sessionOf(request);
  const drop = (): void => void Object.assign(request, { session: null });
  return {
    platform: 'fastify',
    fastify: context,
    url: request.url,
    raw: reply.raw,
    store,
    others: others(),
    cookieName: 'sessionId',
    get session() {
      return session();
    },
    get sid() {
      return sessionOf(request).sessionId;
    },
    destroy: (own = session()) => (own as unknown as { destroy(): Promise<void> }).destroy(),
    destroyBlindly: () => void sessionOf(request).destroy(),
    regenerate: (keys) => sessionOf(request).regenerate(keys),
    save: () => sessionOf(request).save(),
    reload: () => sessionOf(request).reload(),
    logIn: (uid) => login(context, uid),
    logOut: () => request.logOut(),
    drop,
    header: (name, value) => void reply.header(name, value),
    clearCookie: (name) => {
      if (name === undefined) drop();
      void reply.clearCookie(name ?? 'sessionId', { path: '/' });
    },
    setCookie: (name, value) => void reply.setCookie(name, value, { path: '/' }),
    hijack: () => void reply.hijack(),
    closed: () => once(reply.raw, 'close'),
  };
}
