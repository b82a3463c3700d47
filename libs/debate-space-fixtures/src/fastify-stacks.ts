import fastifySession from '@fastify/session';
import type { EndingStack } from './endings.js';
import { FallibleStore } from './fallible-store.js';
import { fastifyEndings } from './fastify-endings.js';
import {
  sessionOf,
  type Context,
  type FastifyEnding,
  type FastifyStore,
  type LoginKind,
} from './fastify-endings/ending.js';
import { ownRows } from './fastify-endings/own-rows.js';
import { FastifyHost, onHttp2, onLambda, type FastifyContext, type FastifyServing } from './fastify-host.js';
import { fastifyLogins } from './fastify-logins.js';
import { onlySid } from './session-jobs.js';

interface FastifyVariant {
  readonly name: string;
  readonly kind: LoginKind;
  readonly ownStore: boolean;
  /** Default: Nest listens. */
  readonly serving?: FastifyServing;
}

const sidIn = async (store: FastifyStore): Promise<string> =>
  store instanceof FallibleStore ? onlySid(store) : [...ownRows(store).keys()].join();

/** An event of a lambda has nobody who goes away before the answer, which comes as a whole. */
const fitsLambda = ({ path, aborts = false, name }: FastifyEnding): boolean =>
  !aborts && path !== '/act-events' && !/raw response|streaming|after the response/.test(name);

const variants: readonly FastifyVariant[] = [
  { name: 'Fastify, @fastify/session', kind: 'session', ownStore: false },
  { name: 'Fastify, @fastify/session and its own store', kind: 'session', ownStore: true },
  { name: 'Fastify, @fastify/passport', kind: 'passport', ownStore: false },
  { name: 'Fastify over HTTP/2, @fastify/session', kind: 'session', ownStore: false, serving: onHttp2 },
  { name: 'Fastify on AWS Lambda, @fastify/aws-lambda', kind: 'session', ownStore: false, serving: onLambda },
];

/** @fastify/session, alone and under @fastify/passport. */
export const fastifyStacks: readonly EndingStack<Context>[] = variants.map(
  ({ name, kind, ownStore, serving }) => ({
    name,
    endings: fastifyEndings
      .map(({ act = () => undefined, ...ending }) => ({ ...ending, act }))
      .filter(
        (ending) =>
          (ending.logins?.includes(kind) ?? true) &&
          !(ending.fails && ownStore) &&
          !(ending.needs === 'own store' && !ownStore) &&
          (serving !== onLambda || fitsLambda(ending)),
      ),
    start: async (act, { name: row }, debateSpace) => {
      const store = new (ownStore ? fastifySession.MemoryStore : FallibleStore)() as FastifyStore;
      const login = fastifyLogins[kind](store);
      const acting = (context: FastifyContext): unknown =>
        act({
          ...context,
          session: sessionOf(context.request),
          store,
          logIn: async (uid) => {
            await login.logIn(context, uid);
          },
        });
      const host = await FastifyHost.start({ login, act: acting, debateSpace, serving });
      return Object.assign(host, {
        recover: () => store.fail?.('set', 0),
        job: async () =>
          fastifyEndings.find((ending) => ending.name === row)?.job?.(store, await sidIn(store)),
      });
    },
  }),
);
