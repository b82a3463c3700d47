import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { ConsoleLogger } from '@nestjs/common';
import type { NestContainer } from '@nestjs/core';
import session from 'express-session';
import { lastValueFrom } from 'rxjs';
import type { FaultRule, NewUser } from 'debate-space-simulator';
import {
  DebateSpaceErasures,
  DebateSpaceModule,
  DebateSpaceOutbox,
  DebateSpaceService,
  type DebateSpaceErasureOptions,
  type DebateSpaceEvent,
  type DebateSpaceModuleOptions,
  type ErasureReceipt,
} from 'nestjs-debate-space';
import { AccessTokens, LogoutRoute } from 'nestjs-debate-space/internal';
import { logInTo, type Browser } from '#support/browser/browser.js';
import { databases, type DatabasePlace, type RunningDatabase } from '#support/servers/databases.js';
import { eventsOf, firstEvent, nextEvents } from '#support/hosts/events.js';
import { withRealRandom } from '#support/process/real-random.js';
import { Scenario } from '#support/hosts/scenario.js';
import { using } from '#support/service/service.js';
import { destroySession } from '#support/hosts/session-jobs.js';
import { SessionHost, type Act } from '#support/hosts/session-host.js';
import { formsOf, tracesOf } from '#support/storages/traces.js';
import type { UserShape } from '#support/hosts/user-shape.js';

/** A part of everything personal and of every key, with characters that each encoding writes in its own way. */
const MARK = 'pläntéd/+7f3k"';
const uidOf = (name: string): string => `${name} 🦊 ${MARK} ${name}`;
const userOf = (name: string): NewUser => ({
  uid: uidOf(name),
  first_name: `first ${MARK}`,
  last_name: `last ${MARK}`,
  email: `${name}.${MARK}@post.example`,
});
/** What a session has of a user beside the uid: `serializeUser((user, done) => done(null, JSON.stringify(user)))`. */
const PASSWORD = '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68L';
const users: UserShape = {
  user: (id) => JSON.stringify({ email: `ada.${MARK}@post.example`, id, password: PASSWORD }),
  name: (json) => (json === undefined ? json : (JSON.parse(json as string) as { id: string }).id),
};
const KEYS = { apiKey: `an api key ${MARK}`, secretKey: `a secret key ${MARK}, long enough for HS256` };
const [FORMER, CURRENT] = [`the former storage key ${MARK}`, `the current storage key ${MARK}`];
const LIST = Array.from({ length: 60 }, (_, n) => `listed ${n}`);
const SINGLE = ['deleted', 'anonymized', 'waiting', 'refused', 'canceled', 'vetoed'];

/** How every logout token begins. */
const TOKEN = 'eyJhbGciOiJIUzI1NiIs';

/** A service that repeats what it was sent, and what it knows, as debug pages do. */
const echo = JSON.stringify({ ...userOf('echo'), ...KEYS });
const FAULTS: readonly FaultRule[] = [
  ...[302, 400, 401, 403, 404, 422, 429, 503].map(
    (status) => ({ kind: 'status', status, body: echo }) as const,
  ),
  { kind: 'redirect', location: `http://127.0.0.1:1/?api_key=${encodeURIComponent(KEYS.apiKey)}` },
  { kind: 'body', body: `<html>${echo}`, contentType: 'text/html' },
  { kind: 'body', body: { success: false, error: echo } },
  { kind: 'body', body: { access_token: 7, echo } },
  { kind: 'outage' },
  { kind: 'reset-after-apply' },
  { kind: 'cut-body' },
  { kind: 'malformed-body' },
  { kind: 'latency', ms: 60_000 },
];

const act: Act = (request) => {
  if (request.query.out !== undefined) return destroySession(request);
  request.session.cookie.maxAge = 300;
};

const shown = (value: unknown): string =>
  inspect(value, { depth: Infinity, showHidden: true, maxArrayLength: null, maxStringLength: null });

const bytesOf = (values: readonly unknown[]): Buffer[] =>
  values.flatMap((value) => [JSON.stringify(value), shown(value)]).map((text) => Buffer.from(text));
const traces = (...values: readonly unknown[]): readonly string[] =>
  [MARK, PASSWORD].flatMap((text) => tracesOf(text, bytesOf(values)));

/** The life of an app, and everything that came of it. */
class Life {
  readonly #scene = new Scenario();
  readonly #store = new session.MemoryStore();
  readonly #sids = new Set<string>();
  readonly #tokens = jest.spyOn(AccessTokens.prototype, 'get');
  readonly #logouts = jest.spyOn(LogoutRoute.prototype, 'send');
  #place: DatabasePlace | undefined;
  /** What was found in the files that should not be there. */
  readonly found: string[] = [];
  files: readonly Buffer[] = [];
  readonly printed: string[] = [];
  readonly events: DebateSpaceEvent[][] = [];
  readonly errors: unknown[] = [];
  readonly receipts: ErasureReceipt[] = [];
  readonly told: unknown[] = [];
  providers = '';
  logouts: readonly string[] = [];
  users: readonly unknown[] = [];
  received: readonly unknown[] = [];

  constructor(readonly database: RunningDatabase) {}

  /** Keys, tokens and session ids. */
  async secrets(): Promise<readonly string[]> {
    const tokens = this.#tokens.mock.results.map(({ value }) =>
      Promise.resolve(value as Promise<string>).catch(() => KEYS.apiKey),
    );
    const sent = this.#logouts.mock.calls.flatMap(([token]) => [token, ...token.split('.').slice(1)]);
    return [
      ...new Set([
        ...Object.values(KEYS),
        FORMER,
        CURRENT,
        ...this.#sids,
        ...sent,
        ...(await Promise.all(tokens)),
      ]),
    ];
  }

  async play(): Promise<void> {
    await this.#scene.begin({ ...KEYS, rateLimit: false, users: [...SINGLE, ...LIST].map(userOf) });
    this.#place = await this.database.place();
    const first = await this.#run([FORMER]);
    const phone = await this.#sessions(first);
    await this.#whileAway(first);
    await this.#whileItFails(first);
    await this.#refused(first);
    await this.#scene.stop();
    await this.#leave('left');
    await this.#withoutFormerKey(await this.#run([CURRENT]));
    await this.#scene.stop();
    const last = await this.#run([CURRENT, FORMER], { giveUpAfterMs: 1 });
    await this.#rotated(last, phone);
    await this.#parked(last);
    await this.#tell(last);
    await this.#scene.stop();
    await this.#look();
    this.logouts = this.#scene.service.received.logouts;
    this.received = this.#scene.service.received.all;
    this.users = this.#scene.service.users.all().map(({ uid }) => uid);
  }

  async end(): Promise<void> {
    await this.#scene.end();
  }

  #options(storageKey: readonly string[], erasure: DebateSpaceErasureOptions = {}): DebateSpaceModuleOptions {
    return using(this.#scene.service, {
      ...KEYS,
      storage: this.#place?.engine,
      storageKey,
      session: { store: this.#store, expiry: { sweepMs: 50 } },
      http: { rateLimit: false, timeoutMs: 1_000, maxAttempts: 2 },
      erasure: {
        ...erasure,
        beforeErase: ({ uid }) => (uid === uidOf('vetoed') ? { veto: 'legal hold' } : undefined),
      },
    });
  }

  async #run(storageKey: readonly string[], erasure?: DebateSpaceErasureOptions): Promise<SessionHost> {
    const logger = new ConsoleLogger('App', {
      logLevels: ['verbose', 'debug', 'log', 'warn', 'error', 'fatal'],
    });
    const debateSpace = this.#options(storageKey, erasure);
    const host = await withRealRandom(() =>
      SessionHost.start({ store: this.#store, act, users, logger, debateSpace }),
    );
    this.events.push(eventsOf(host.app));
    return this.#scene.add(Promise.resolve(host));
  }

  async #look(): Promise<void> {
    this.files = await this.database.files();
    this.found.push(...[MARK, PASSWORD].flatMap((text) => tracesOf(text, this.files)));
    for (const sid of this.#sids)
      if (this.files.some((file) => file.includes(sid))) this.found.push(`session ${sid}`);
    if (this.files.some((file) => file.includes(TOKEN))) this.found.push('a JWT');
  }

  async #failing(call: () => unknown): Promise<void> {
    try {
      await call();
    } catch (error) {
      this.errors.push(error);
    }
  }

  /** Two sessions: one expires, and the phone stays logged in through all restarts. */
  async #sessions(host: SessionHost): Promise<Browser> {
    const [phone, short] = [await logInTo(host, uidOf('phone')), await logInTo(host, uidOf('expired'))];
    for (const sid of Object.keys((this.#store as unknown as { sessions: object }).sessions))
      this.#sids.add(sid);
    const expired = firstEvent(host.app, 'logout-delivered');
    await short.post('/act');
    await expired;
    return phone;
  }

  /** Erasures wait, and logouts of their users with them. */
  async #whileAway({ app }: SessionHost): Promise<void> {
    const { service } = this.#scene;
    const [erasures, debate] = [app.get(DebateSpaceErasures), app.get(DebateSpaceService)];
    const parked = firstEvent(app, 'logout-parked');
    service.faults.add({ kind: 'status', status: 403, body: echo, operation: 'logout', times: 1 });
    await debate.logoutUser(uidOf('vetoed'));
    await parked;
    await service.goDown();
    const heldUp = firstEvent(app, 'erasure-service-down');
    await debate.logoutUser(uidOf('waiting'));
    const request = { mode: 'delete', reference: 'one by one', requestedBy: 'the desk' } as const;
    for (const name of ['deleted', 'waiting', 'vetoed'])
      await erasures.request({ ...request, uid: uidOf(name) });
    await erasures.request({ uid: uidOf('anonymized'), mode: 'anonymize' });
    await erasures.requestMany(Readable.from(LIST.map(uidOf)), { mode: 'delete', reference: 'the list' });
    await erasures.request({ uid: uidOf('canceled'), mode: 'delete', reference: 'given back' });
    await heldUp;
    await erasures.cancel('given back');
    await lastValueFrom(erasures.progress('given back')); // its request may have been running
    await this.#failing(() => debate.deleteUser(uidOf('deleted')));
    await this.#failing(() => debate.findUser(uidOf('deleted'), { signal: AbortSignal.timeout(50) }));
    await this.#look();
  }

  /** The service refuses, answers wrongly, and loses answers; then all is well. */
  async #whileItFails({ app }: SessionHost): Promise<void> {
    const { faults } = this.#scene.service;
    const finished = nextEvents(app, 'erasure-finished', 3);
    for (const status of [503, 422])
      faults.add({ kind: 'status', status, body: echo, operation: 'anonymize', times: 1 });
    faults.add({ kind: 'reset-after-apply', operation: 'delete', times: 2 });
    faults.add({ kind: 'body', body: { success: false, error: echo }, operation: 'delete', times: 1 });
    faults.add({ kind: 'status', status: 400, body: echo, operation: 'logout', times: 1 });
    await this.#scene.service.comeBack();
    await finished;
    await this.#look();
  }

  /** Requests that are refused immediately, with uids where they do not belong. */
  async #refused({ app }: SessionHost): Promise<void> {
    const erasures = app.get(DebateSpaceErasures);
    const sources = [
      [uidOf('refused'), ''],
      [uidOf('refused'), `${MARK}\n`],
      [{ uid: MARK }],
      [Buffer.from(MARK)],
      MARK,
    ] as Iterable<string>[];
    for (const source of sources)
      await this.#failing(() => erasures.requestMany(source, { mode: 'delete', reference: 'none' }));
    await this.#failing(() => erasures.request({ uid: `${MARK}\n`, mode: 'delete' }));
    await this.#failing(() =>
      erasures.request({ uid: uidOf('refused'), mode: 'delete', reference: `\n${MARK}` }),
    );
    await erasures.dryRun(['refused', 'vetoed'].map(uidOf));
  }

  /** A process without a worker leaves a logout behind, under the former key. */
  async #leave(name: string): Promise<void> {
    const app = await withRealRandom(() => this.#scene.app({ ...this.#options([FORMER]), worker: false }));
    await app.get(DebateSpaceService).logoutUser(uidOf(name));
    await this.#scene.stop();
  }

  /** The former key is taken away too early: its logouts are parked, and hold up nothing else. */
  async #withoutFormerKey({ app }: SessionHost): Promise<void> {
    const outbox = app.get(DebateSpaceOutbox);
    const delivered = firstEvent(app, 'logout-delivered');
    await app.get(DebateSpaceService).logoutUser(uidOf('new'));
    expect(await delivered).toMatchObject({ uid: uidOf('new') });
    while ((await outbox.parked()).length < 2) await sleep(20);
    const [, left] = await outbox.parked();
    expect(left).toMatchObject({ uid: '', cause: 'unreadable', hint: expect.stringContaining('storageKey') });
    expect(await outbox.retry(left?.id ?? '')).toBe(true);
    const isParkedAgain = async (): Promise<boolean> =>
      (await outbox.parked()).some(({ parkedAt }) => parkedAt > (left?.parkedAt ?? parkedAt));
    while (!(await isParkedAgain())) await sleep(20);
    expect(await outbox.history(uidOf('expired'))).toEqual([]);
  }

  /** The current key seals, and the former one still opens and finds. */
  async #rotated({ app, url }: SessionHost, phone: Browser): Promise<void> {
    const outbox = app.get(DebateSpaceOutbox);
    for (const name of ['expired', 'new'])
      expect(await outbox.history(uidOf(name))).toMatchObject([{ state: 'delivered' }]);
    const parked = await outbox.parked();
    expect(parked.map(({ uid }) => uid).toSorted()).toEqual(['left', 'vetoed'].map(uidOf));
    const delivered = nextEvents(app, 'logout-delivered', 3);
    for (const { id } of parked) expect(await outbox.retry(id)).toBe(true);
    await phone.post(`${url}/act?out`);
    const uids = (await delivered).map(({ uid }) => uid);
    expect(uids.toSorted()).toEqual(['left', 'phone', 'vetoed'].map(uidOf));
    const erasures = app.get(DebateSpaceErasures);
    for await (const receipt of erasures.receiptsOf(uidOf('deleted'))) this.told.push(receipt);
    expect(this.told).toMatchObject([{ reference: 'one by one', outcome: 'erased' }]);
  }

  /** The service refuses, until an operator has talked to its operator. */
  async #parked({ app }: SessionHost): Promise<void> {
    const erasures = app.get(DebateSpaceErasures);
    const end = this.#scene.service.faults.add({
      kind: 'status',
      status: 422,
      body: echo,
      operation: 'delete',
    });
    const parked = firstEvent(app, 'erasure-parked');
    await erasures.request({ uid: uidOf('refused'), mode: 'delete', reference: 'in the end' });
    await parked;
    end();
    const finished = firstEvent(app, 'erasure-finished');
    await erasures.pause('in the end');
    await erasures.resume('in the end');
    await erasures.retry('in the end');
    await finished;
  }

  async #tell({ app }: SessionHost): Promise<void> {
    const erasures = app.get(DebateSpaceErasures);
    for await (const status of erasures.list()) {
      this.told.push(status, await erasures.status(status.reference));
      for await (const receipt of erasures.receipts(status.reference)) this.receipts.push(receipt);
    }
    this.told.push(await app.get(DebateSpaceOutbox).stats());
    const { container } = app as unknown as { container: NestContainer };
    const modules = [...container.getModules().values()].filter(
      ({ metatype }) => metatype === DebateSpaceModule,
    );
    const instances = modules.flatMap(({ providers }) =>
      [...providers.values()].map(({ instance }) => instance),
    );
    this.providers = inspect(instances, { depth: 6, showHidden: true, maxArrayLength: null });
  }
}

it('of users, keys and tokens, nothing remains in the errors of a service that repeats what it was sent', async () => {
  const scene = new Scenario();
  const tokens = jest.spyOn(AccessTokens.prototype, 'get');
  jest.spyOn(Math, 'random').mockReturnValue(0); // no backoff
  try {
    await scene.begin({ ...KEYS, rateLimit: false, users: [userOf('echo')] });
    const http = { rateLimit: false, timeoutMs: 300, maxAttempts: 2 } as const;
    const app = await scene.app(using(scene.service, { ...KEYS, http }));
    const errors: unknown[] = [];
    for (const fault of FAULTS)
      for (const operation of ['list', 'token'] as const) {
        scene.service.faults.add({ ...fault, operation, times: 2 });
        scene.service.revokeTokens();
        const listed = app.get(DebateSpaceService).listUsers();
        await listed.catch((error: unknown) => errors.push(error));
        scene.service.faults.clear();
      }
    const given = tokens.mock.results.map(({ value }) => Promise.resolve(value as Promise<string>));
    const secrets = (await Promise.allSettled(given)).flatMap((token) =>
      token.status === 'fulfilled' ? token.value : [],
    );
    expect(secrets.length).toBeGreaterThan(FAULTS.length);
    expect(errors.length).toBeGreaterThan(FAULTS.length);
    expect(traces(errors, errors.map(String))).toEqual([]);
    const text = shown(errors);
    expect([...Object.values(KEYS), ...secrets].filter((secret) => text.includes(secret))).toEqual([]);
  } finally {
    await scene.end();
    jest.restoreAllMocks();
  }
});

for (const kind of databases) {
  kind.describe(`of users, keys and sessions, with a storage in ${kind.name}, nothing remains`, () => {
    let database: RunningDatabase;
    let life: Life;
    let secrets: readonly string[];
    beforeAll(async () => {
      database = await kind.start();
      life = new Life(database);
      const print = (chunk: unknown): boolean => life.printed.push(String(chunk)) > 0;
      for (const stream of [process.stdout, process.stderr])
        jest.spyOn(stream, 'write').mockImplementation(print);
      for (const method of ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const)
        jest.spyOn(console, method).mockImplementation((...words) => void print(inspect(words)));
      jest.spyOn(Math, 'random').mockReturnValue(0); // no backoff
      try {
        await life.play();
        secrets = await life.secrets();
      } finally {
        jest.restoreAllMocks();
      }
    });
    afterAll(async () => {
      await life.end();
      await database.stop();
    });

    const leaksIn = (text: string): readonly string[] => secrets.filter((secret) => text.includes(secret));

    it('at the service, except of users who were not to be erased; of their records it receives the uid alone', () => {
      expect(life.users.filter(Boolean)).toEqual(['canceled', 'vetoed'].map(uidOf));
      const once = ['expired', 'left', 'new', 'phone'].map(uidOf);
      // A logout that a busy storage takes too late is delivered from memory as well.
      const loggedOut = new Set(life.logouts.filter((uid) => once.includes(uid)));
      expect([...loggedOut].toSorted()).toEqual(once);
      const received = bytesOf(life.received);
      for (const other of [PASSWORD, 'post.example']) expect(tracesOf(other, received)).toEqual([]);
    });

    it('in the files of the storage, at no time, nor a JWT or a session id', () => {
      expect(life.found).toEqual([]);
      expect(tracesOf(life.receipts[0]?.subject ?? '', life.files)).toContain('UTF-8'); // these are the files
    });

    it('in the log, at any level, or on the console', () => {
      const text = life.printed.join('\n');
      expect(text).toContain('erasure the list is finished: 60 done');
      expect(traces(text)).toEqual([]);
      expect(leaksIn(text)).toEqual([]);
    });

    it('in the events, except the uid in those of logouts', () => {
      const events = life.events.flat();
      const unnamed = events.filter(({ type }) => !/^(session-ended|logout-)/.test(type));
      const types = new Set(unnamed.map(({ type }) => type));
      for (const type of [
        'requested',
        'done',
        'vetoed',
        'retrying',
        'parked',
        'canceled',
        'resumed',
        'finished',
      ])
        expect(types).toContain(`erasure-${type}`);
      expect(traces(unnamed)).toEqual([]);
      expect(leaksIn(shown(events))).toEqual([]);
    });

    it('in receipts, in what is reported about erasures, and in the statistics', () => {
      const of = (wanted: string) => life.receipts.filter(({ outcome }) => outcome === wanted);
      expect(of('erased')).toHaveLength(LIST.length + SINGLE.length - 2);
      expect(of('vetoed')).toMatchObject([{ reason: 'legal hold' }]);
      expect(traces(life.receipts, life.told)).toEqual([]);
    });

    it('in errors', () => {
      expect(life.errors.length).toBeGreaterThanOrEqual(2 + 7);
      expect(traces(life.errors, life.errors.map(String))).toEqual([]);
      expect(leaksIn(shown(life.errors))).toEqual([]);
    });

    it('of the keys, in what the providers of the module show', () => {
      expect(life.providers).toContain('apiKey: [secret]');
      expect([...Object.values(KEYS), FORMER, CURRENT].filter((key) => life.providers.includes(key))).toEqual(
        [],
      );
    });

    it('unnoticed: the search finds a text in every form', () => {
      for (const [name, form] of formsOf(MARK))
        expect(
          tracesOf(MARK, [Buffer.concat([Buffer.from('before '), form, Buffer.from(' after')])]),
        ).toContain(name);
      expect(secrets.length).toBeGreaterThan(10);
      for (const secret of secrets) expect(leaksIn(`before ${secret} after`)).toContain(secret);
    });
  });
}
