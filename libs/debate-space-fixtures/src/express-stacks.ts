import { ObjectId } from 'bson';
import type { Store } from 'express-session';
import type { DebateSpaceSessionOptions } from 'nestjs-debate-space';
import { Browser } from './browser.js';
import { BsonStore } from './bson-store.js';
import type { EndingStack } from './endings.js';
import { expressEndings } from './express-endings.js';
import { SHORT_MAX_AGE_MS, type ExpressContext, type ExpressEnding } from './express-endings/ending.js';
import { behindCalledApp, onLambda, wiringsInParents } from './express-wirings.js';
import { FallibleStore } from './fallible-store.js';
import { PrefixedStore } from './prefixed-store.js';
import { onlySid } from './session-jobs.js';
import {
  SessionHost,
  sessionStacks,
  type Act,
  type SessionHostOptions,
  type SessionStack,
} from './session-host.js';
import type { UserShape } from './user-shape.js';

interface ExpressVariant {
  readonly name: string;
  readonly stack: SessionStack;
  /** Which rows it has. Default: all that belong to its stack. */
  readonly has?: (ending: ExpressEnding) => boolean;
  /** Default: one that may fail. */
  readonly store?: () => Store;
  readonly host?: (
    store: Store,
  ) => Partial<SessionHostOptions> & { readonly session?: DebateSpaceSessionOptions };
  /** A request that comes before any other. */
  readonly first?: string;
  /** The name of a user who was reported. */
  readonly nameOf?: (uid: string) => string;
}

function stackOf({
  name,
  stack,
  has = ({ expires }) => !expires,
  ...variant
}: ExpressVariant): EndingStack<ExpressContext> {
  const rows = expressEndings.filter(
    (ending) => (ending.stacks ?? sessionStacks).includes(stack) && has(ending),
  );
  return {
    name,
    endings: rows.map(({ act = () => undefined, ...ending }) => ({
      ...ending,
      act: ({ request, response, store }) => act(request, response, store),
    })),
    start: async (act, ending, debateSpace) => {
      const store = variant.store?.() ?? new FallibleStore();
      const acting: Act = (request, response) => act({ request, response, store });
      const { session, ...options } = variant.host?.(store) ?? {};
      const { unset } = ending;
      const host = await SessionHost.start({
        stack,
        store,
        act: acting,
        unset,
        debateSpace: debateSpace && { ...debateSpace, session: { ...debateSpace.session, ...session } },
        ...options,
      });
      if (variant.first) await new Browser(host.url, host.fetch).get(variant.first);
      const { job } = rows.find((row) => row.name === ending.name) ?? {};
      return Object.assign(host, {
        job: async () => job?.(store, await onlySid(store)),
        nameOf: variant.nameOf,
      });
    },
  };
}

/** A user who is known in the service by the hexadecimal text of an ObjectId. */
const idOf = (name: string): ObjectId => new ObjectId(Buffer.from(name.padEnd(12)));
const nameOfId = (id: string): string => Buffer.from(id, 'hex').toString().trim();
const nameIn =
  (member: string) =>
  (user: unknown): string | undefined => {
    const id = (user as Record<string, unknown> | undefined)?.[member];
    return id instanceof ObjectId ? nameOfId(id.toHexString()) : (id as string | undefined);
  };
const keptIn = (member: string, id: (name: string) => unknown): UserShape => ({
  user: (name) => ({ [member]: id(name), email: `${name}@example.org` }),
  name: nameIn(member),
});
const isCore = ({ core = false }: ExpressEnding): boolean => core;
/** An event of a lambda has nobody who goes away before the answer, which comes as a whole. */
const fitsLambda = ({ core = false, path, aborts = false, name }: ExpressEnding): boolean =>
  core && !aborts && path !== '/act-events' && !name.includes('after the response');

const variants: readonly ExpressVariant[] = [
  { name: 'Express, express-session', stack: 'express-session' },
  { name: 'Express, passport', stack: 'passport' },
  {
    name: 'Express, express-session with session.expiry',
    stack: 'express-session',
    has: ({ expires = false }) => expires,
    host: (store) => ({ maxAge: SHORT_MAX_AGE_MS, session: { store, expiry: { sweepMs: 50 } } }),
  },
  ...Object.entries(wiringsInParents).map(([name, wiring]): ExpressVariant => ({
    name: `Express in a parent app, ${name}`,
    stack: 'express-session',
    has: isCore,
    host: () => ({ wiring }),
  })),
  {
    name: 'Express, behind another app that is called',
    stack: 'express-session',
    has: isCore,
    host: () => ({ wiring: behindCalledApp }),
  },
  {
    name: 'Express on AWS Lambda, @codegenie/serverless-express',
    stack: 'express-session',
    has: fitsLambda,
    host: () => ({ wiring: onLambda }),
  },
  {
    name: 'Express and users of another shape, { _id }',
    stack: 'express-session',
    has: isCore,
    host: () => ({ users: keptIn('_id', (name) => name) }),
  },
  ...['_id', 'id'].map((member): ExpressVariant => ({
    name: `Express and users of another shape, { ${member} } with an ObjectId`,
    stack: 'express-session',
    has: isCore,
    store: () => new BsonStore(),
    host: () => ({ users: keptIn(member, idOf) }),
    nameOf: nameOfId,
  })),
  {
    name: 'Express and users of another shape, passport with an ObjectId',
    stack: 'passport',
    has: isCore,
    store: () => new BsonStore(),
    host: () => ({ users: { user: idOf, name: (id) => nameOfId((id as ObjectId).toHexString()) } }),
    nameOf: nameOfId,
  },
  {
    name: 'Express and a derived store, of a store that nobody uses',
    stack: 'express-session',
    has: isCore,
    store: () => new PrefixedStore().derived('derived:'),
  },
  {
    name: 'Express and a derived store, of one that is watched',
    stack: 'express-session',
    has: isCore,
    store: () => new PrefixedStore().derived('derived:'),
    host: (store) => ({ stores: { '/admin': Object.getPrototypeOf(store) as Store } }),
    first: '/admin/whoami',
  },
];

/** express-session, alone and under passport; and where the sessions, the users or Nest itself are elsewhere. */
export const expressStacks: readonly EndingStack<ExpressContext>[] = variants.map(stackOf);
