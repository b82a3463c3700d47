import fastifySession from '@fastify/session';
import { ObjectId } from 'bson';
import type { Request, Response } from 'express';
import session, { type Store } from 'express-session';
import type { DebateSpaceModuleOptions, DebateSpaceSessionOptions } from 'nestjs-debate-space';
import { BsonStore } from '../stores/bson-store.js';
import { ConnectionStore } from '../stores/connection-store.js';
import { cookieStacks } from './cookie-endings.js';
import { cellsOf, type EndingCell, type EndingStack } from './endings.js';
import { behindCalledApp, onLambda as expressOnLambda, wiringsInParents } from '../hosts/express-wirings.js';
import { FallibleStore } from '../stores/fallible-store.js';
import {
  FastifyHost,
  onHttp2,
  onLambda,
  type FastifyContext,
  type FastifyHostOptions,
} from '../hosts/fastify-host.js';
import { fastifyLogins, type LoginKind } from '../hosts/fastify-logins.js';
import { logIn, SessionHost, type SessionHostOptions } from '../hosts/session-host.js';
import { onlySid, type HandledStore } from '../hosts/session-jobs.js';
import { socketStacks } from './socket-stacks.js';
import type { UserShape } from '../hosts/user-shape.js';
import { onExpress, onFastify, type Handling } from './handling.js';
import { SHORT_MAX_AGE_MS, type Row } from './rows.js';
import { scenes } from './scenes.js';
import { sessionEndings } from './session-endings.js';

interface Variant {
  readonly name: string;
  readonly login: LoginKind;
  /** Of which rows no answer can wait for the plugin. Default: those that say so. */
  readonly isLater?: (row: Row) => boolean;
  /** Which rows it has, of those of its platform and login. Default: all. */
  readonly has?: (row: Row) => boolean;
  /** Default: one that may fail. */
  readonly store?: () => HandledStore;
  readonly session?: (store: HandledStore) => DebateSpaceSessionOptions;
  /** The name of a user who was reported. */
  readonly nameOf?: (uid: string) => string;
}
type ExpressVariant = Variant & { readonly host?: Partial<SessionHostOptions> };
type FastifyVariant = Variant & { readonly host?: Partial<FastifyHostOptions> };

const always = (): boolean => true;
const isCore = ({ core = false }: Row): boolean => core;
const isUsual = ({ needs }: Row): boolean => needs === undefined;
/** An event of a lambda has nobody who goes away before the answer, which comes as a whole. */
const fitsLambda = ({ path, aborts = false, play, name }: Row): boolean =>
  !aborts && !play && path !== '/act-events' && !/raw response|streaming|after the response/.test(name);
/** The platform freezes a function after its answer: no verdict may wait for the grace, which is longer than a row is played. */
const withoutGrace = (): DebateSpaceSessionOptions => ({ graceMs: 60_000 });

const rowsOf = (platform: Handling['platform'], { login, isLater, has = isUsual }: Variant): readonly Row[] =>
  [...sessionEndings, ...scenes]
    .filter((row) => (row.on ?? platform) === platform && (row.login ?? login) === login && has(row))
    .map((row) => (isLater?.(row) ? { ...row, later: true } : row));

function sessionOptions(
  debateSpace: DebateSpaceModuleOptions | undefined,
  { graceMs }: Row,
  more: DebateSpaceSessionOptions | undefined,
): DebateSpaceModuleOptions | undefined {
  const grace = graceMs === undefined ? {} : { graceMs };
  return debateSpace && { ...debateSpace, session: { ...debateSpace.session, ...grace, ...more } };
}

const onExpressStack = (variant: ExpressVariant): EndingStack<Handling> => ({
  name: variant.name,
  endings: rowsOf('express', variant),
  start: async ({ act, debateSpace, trace, others }, row: Row) => {
    const store = trace.record(variant.store?.() ?? new FallibleStore()) as HandledStore & Store;
    const host = await SessionHost.start({
      stack: variant.login === 'passport' ? 'passport' : 'express-session',
      store,
      act: (request: Request, response: Response) => act(onExpress(request, response, { store, others })),
      unset: row.unset,
      debateSpace: sessionOptions(debateSpace, row, variant.session?.(store)),
      ...variant.host,
    });
    return Object.assign(host, {
      recover: () => store.fail?.('set', 0),
      job: async () => row.job?.(store, row.play ? '' : await onlySid(store)),
      store,
      nameOf: variant.nameOf,
    });
  },
});

const onFastifyStack = (variant: FastifyVariant): EndingStack<Handling> => ({
  name: variant.name,
  endings: rowsOf('fastify', variant),
  start: async ({ act, debateSpace, trace, others }, row: Row) => {
    const store = trace.record(variant.store?.() ?? new FallibleStore());
    const login = fastifyLogins[variant.login](store);
    const host = await FastifyHost.start({
      login,
      act: (context) => act(onFastify(context, { store, others, login: login.logIn })),
      debateSpace: sessionOptions(debateSpace, row, variant.session?.(store)),
      hooks: row.path?.includes('?in=') === true || row.play !== undefined,
      ...variant.host,
    });
    return Object.assign(host, {
      recover: () => store.fail?.('set', 0),
      job: async () => row.job?.(store, await sidIn(store)),
      store,
    });
  },
});

/** express-session in front of Fastify, by `app.use`: the session is on Node's request. */
const onRawRequests: EndingStack<Handling> = {
  name: 'Fastify, express-session by app.use',
  endings: rowsOf('express', {
    name: '',
    login: 'session',
    has: isCore,
    // express-session does not see the length that Fastify gives to the head, and writes the whole body before it saves.
    isLater: ({ name }) => name.includes('session.user'),
  }).map((row) => ({ ...row, laterOn: 'nest10' as const })),
  start: async ({ act, debateSpace, trace, others }, row: Row) => {
    const store = trace.record(new FallibleStore()) as HandledStore & Store;
    const rawOf = ({ request }: FastifyContext): Request => request.raw as Request;
    const handling = (context: FastifyContext): Handling => {
      const response = context.reply.raw as Response;
      return Object.defineProperties(onExpress(rawOf(context), response, { store, others }), {
        url: { value: context.request.url },
        logIn: { value: (uid: string) => logIn(rawOf(context), uid) },
        clearCookie: { value: () => response.appendHeader('Set-Cookie', 'connect.sid=; Max-Age=0; Path=/') },
        hijack: { value: () => context.reply.hijack() },
      });
    };
    const settings = { secret: 'only for tests', resave: false, saveUninitialized: false, store };
    const host = await FastifyHost.start({
      login: {
        register: (app) => app.use(session(settings)),
        logIn: (context, uid) => logIn(rawOf(context), uid),
        uidIn: (context) => rawOf(context).session.user?.uid,
      },
      act: (context) => act(handling(context)),
      debateSpace: sessionOptions(debateSpace, row, undefined),
    });
    return Object.assign(host, { job: async () => row.job?.(store, await onlySid(store)), store });
  },
};

const sidIn = async (store: HandledStore): Promise<string> =>
  store instanceof FallibleStore
    ? onlySid(store)
    : [...(Reflect.get(store, 'store') as Map<string, object>).keys()].join();

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

const expressCore = { login: 'session', has: isCore } as const;
const withObjectIds = { store: () => new BsonStore(), nameOf: nameOfId } as const;
const expressVariants: readonly ExpressVariant[] = [
  { name: 'Express, express-session', login: 'session' },
  { name: 'Express, passport', login: 'passport' },
  {
    name: 'Express, express-session with session.expiry',
    login: 'session',
    has: ({ needs }) => needs === 'expiry',
    host: { maxAge: SHORT_MAX_AGE_MS },
    session: (store) => ({ store, expiry: { sweepMs: 50 } }),
  },
  {
    name: 'Express, express-session with rolling',
    login: 'session',
    has: ({ needs }) => needs === 'rolling',
    host: { maxAge: 3_600_000 },
  },
  {
    name: 'Express, a store that calls back in the context of another request',
    login: 'session',
    store: () => new ConnectionStore(),
  },
  {
    ...expressCore,
    name: 'Express, behind another app that is called',
    isLater: always,
    host: { wiring: behindCalledApp },
  },
  ...Object.entries(wiringsInParents).map(([name, wiring]): ExpressVariant => ({
    ...expressCore,
    name: `Express in a parent app, ${name}`,
    isLater: always,
    host: { wiring },
  })),
  {
    name: 'Express on AWS Lambda, @codegenie/serverless-express',
    login: 'session',
    has: (row) => isCore(row) && fitsLambda(row),
    host: { wiring: expressOnLambda },
    session: withoutGrace,
  },
  {
    ...expressCore,
    name: 'Express and users of another shape, { _id }',
    host: { users: keptIn('_id', (name) => name) },
  },
  {
    ...expressCore,
    name: 'Express and users of another shape, by toJSON',
    host: {
      users: { user: (uid) => ({ id: `row of ${uid}`, toJSON: () => ({ uid }) }), name: nameIn('uid') },
    },
  },
  ...['_id', 'id'].map((member): ExpressVariant => ({
    ...expressCore,
    ...withObjectIds,
    name: `Express and users of another shape, { ${member} } with an ObjectId`,
    host: { users: keptIn(member, idOf) },
  })),
  {
    ...expressCore,
    ...withObjectIds,
    name: 'Express and users of another shape, passport with an ObjectId',
    login: 'passport',
    host: { users: { user: idOf, name: (id) => nameOfId((id as ObjectId).toHexString()) } },
  },
];

const ownStore = (): HandledStore => new fastifySession.MemoryStore() as unknown as HandledStore;
const fastifyVariants: readonly FastifyVariant[] = [
  { name: 'Fastify, @fastify/session', login: 'session' },
  {
    name: 'Fastify, @fastify/session and its own store',
    login: 'session',
    store: ownStore,
    has: ({ fails, needs }) => !fails && needs !== 'expiry',
  },
  { name: 'Fastify, @fastify/passport', login: 'passport' },
  {
    name: 'Fastify, @fastify/session registered before Nest',
    login: 'session',
    has: isCore,
    host: { isEarly: true },
  },
  {
    name: 'Fastify, a store that calls back in the context of another request',
    login: 'session',
    store: () => new ConnectionStore(),
  },
  {
    name: 'Fastify over HTTP/2, @fastify/session',
    login: 'session',
    isLater: ({ name }) => name.includes('through the raw response'),
    host: { serving: onHttp2 },
  },
  {
    name: 'Fastify on AWS Lambda, @fastify/aws-lambda',
    login: 'session',
    has: (row) => isUsual(row) && fitsLambda(row),
    host: { serving: onLambda },
    session: withoutGrace,
  },
];

const tables: readonly (readonly EndingCell[])[] = [
  [...expressVariants.map(onExpressStack), ...fastifyVariants.map(onFastifyStack), onRawRequests].flatMap(
    cellsOf,
  ),
  cookieStacks.flatMap(cellsOf),
  socketStacks.flatMap(cellsOf),
];

/** Every row on every stack that has it. */
export const endingCells: readonly EndingCell[] = tables.flat();

const platformOf = ({ stack }: EndingCell): string => /^\w+/.exec(stack)?.[0] ?? '';

/** Every row once on each platform, on the first stack that has it. */
export const eachRowOnce: readonly EndingCell[] = tables.flatMap((cells) => {
  const byRow = new Map<string, EndingCell>();
  for (const cell of cells) {
    const key = `${platformOf(cell)}: ${cell.ending.name}`;
    if (!byRow.has(key)) byRow.set(key, cell);
  }
  return [...byRow.values()];
});
