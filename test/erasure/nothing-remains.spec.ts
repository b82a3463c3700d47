import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import { ConsoleLogger, Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { filter, firstValueFrom, from, lastValueFrom, take, toArray } from 'rxjs';
import type { DebateSpaceSimulator, NewUser } from 'debate-space-simulator';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceModule,
  DebateSpaceOutbox,
  DebateSpaceService,
  type DebateSpaceEvent,
  type DebateSpaceModuleOptions,
  type ErasureReceipt,
} from 'nestjs-debate-space';
import { keptPlaces, type KeptPlace } from 'debate-space-fixtures/kept-places.js';
import { startService, using } from 'debate-space-fixtures/service.js';
import { tracesOf } from 'debate-space-fixtures/traces.js';

/** A part of everything personal here, with characters that each encoding writes in its own way. */
const PERSONAL = ['uid-äö/7f3k"🦊', 'Žofie-5d8q', "O'Nachnäme-6h1v", 'post+2w9x@büro.example'] as const;
const [UID, NAME, SURNAME, EMAIL] = PERSONAL;
const uidOf = (name: string): string => `${name} ${UID} ${name}`;
const userOf = (name: string): NewUser => ({
  uid: uidOf(name),
  first_name: `${NAME} ${name}`,
  last_name: `${SURNAME} ${name}`,
  email: `${name}.${EMAIL}`,
  contributions: 3,
});
const listed = Array.from({ length: 300 }, (_, n) => `listed ${n}`);
const single = [
  'deleted',
  'anonymized',
  'parked logout',
  'waiting logout',
  'hesitant',
  'refused',
  'canceled',
  'vetoed',
];
/** What a service says that repeats whom a request was about. */
const echo = JSON.stringify(userOf('echo'));
const uidsOf = (names: readonly string[]): Readable => Readable.from(names.map(uidOf));

/** Everything that came of it, in one place after the other. */
class Story {
  readonly kept: Buffer[] = [];
  readonly printed: string[] = [];
  readonly events: DebateSpaceEvent[] = [];
  readonly receipts: ErasureReceipt[] = [];
  readonly reported: unknown[] = [];
  /** Whose logouts are parked in the end. */
  readonly parked: string[] = [];
  readonly errors: unknown[] = [];
  readonly #place: KeptPlace;
  readonly #service: DebateSpaceSimulator;
  #doubts = 0;

  constructor(place: KeptPlace, service: DebateSpaceSimulator) {
    this.#place = place;
    this.#service = service;
  }

  async run(): Promise<void> {
    const app = await this.#start();
    await this.#whileAway(app);
    await this.#whileItFails(app);
    await this.#refused(app);
    await app.close();
    await this.#look();
    const later = await this.#start({ erasure: { giveUpAfterMs: 1 } });
    await this.#givenUp(later);
    await this.#tell(later);
    await later.close();
    await this.#look();
  }

  async #start(more: Partial<DebateSpaceModuleOptions> = {}): Promise<INestApplication> {
    const options = using(this.#service, {
      storage: this.#place.engine(),
      storageKey: 'the storage key of a test',
      http: { rateLimit: false, timeoutMs: 500 },
      ...more,
      erasure: {
        ...more.erasure,
        beforeErase: ({ uid }) => {
          if (uid === uidOf('vetoed')) return { veto: 'legal hold' };
          if (uid !== uidOf('hesitant') || (this.#doubts += 1) > 1) return undefined;
          throw new TypeError(`what about ${echo}?`);
        },
      },
    });
    @Module({ imports: [DebateSpaceModule.forRoot(options)] })
    class App {}
    const logger = new ConsoleLogger('App', {
      logLevels: ['verbose', 'debug', 'log', 'warn', 'error', 'fatal'],
    });
    const app = await NestFactory.create(App, { logger, abortOnError: false });
    app.get(DebateSpaceEvents).events$.subscribe((event) => this.events.push(event));
    return app.init();
  }

  async #look(): Promise<void> {
    this.kept.push(...(await this.#place.kept()));
  }

  async #failing(call: () => Promise<unknown>): Promise<void> {
    try {
      await call();
    } catch (error) {
      this.errors.push(error);
    }
  }

  /** Erasures wait, and logouts of their users with them. */
  async #whileAway(app: INestApplication): Promise<void> {
    const [erasures, debate] = [app.get(DebateSpaceErasures), app.get(DebateSpaceService)];
    const parked = next(app, 'logout-parked', 2);
    this.#service.faults.add({ kind: 'status', status: 403, body: echo, operation: 'logout', times: 2 });
    for (const name of ['parked logout', 'vetoed']) await debate.logoutUser(uidOf(name));
    await parked;
    await this.#service.goDown();
    const heldUp = next(app, 'erasure-service-down');
    await debate.logoutUser(uidOf('waiting logout'));
    for (const name of ['deleted', 'parked logout', 'waiting logout', 'hesitant', 'vetoed'])
      await erasures.request({
        uid: uidOf(name),
        mode: 'delete',
        reference: 'one by one',
        requestedBy: 'the desk',
      });
    await erasures.request({ uid: uidOf('anonymized'), mode: 'anonymize' });
    await erasures.requestMany(uidsOf(listed), { mode: 'delete', reference: 'the list' });
    await erasures.request({ uid: uidOf('canceled'), mode: 'delete', reference: 'given back' });
    await heldUp;
    await erasures.cancel('given back');
    await lastValueFrom(erasures.progress('given back')); // it may have been under way
    await this.#failing(() => debate.deleteUser(uidOf('deleted')));
    await this.#failing(() => debate.findUser(uidOf('deleted'), { signal: AbortSignal.timeout(50) }));
    await this.#look();
  }

  async #whileItFails(app: INestApplication): Promise<void> {
    const { faults } = this.#service;
    const finished = next(app, 'erasure-finished', 3);
    faults.add({ kind: 'status', status: 503, body: echo, operation: 'delete', times: 1 });
    faults.add({ kind: 'status', status: 422, body: echo, operation: 'anonymize', times: 1 });
    faults.add({ kind: 'reset-after-apply', operation: 'delete', times: 2 });
    faults.add({
      kind: 'body',
      status: 404,
      contentType: 'text/html',
      body: `<html>${echo}`,
      operation: 'delete',
      times: 1,
    });
    faults.add({ kind: 'body', body: { success: false, error: echo }, operation: 'delete', times: 1 });
    faults.add({ kind: 'status', status: 400, body: echo, operation: 'logout', times: 1 });
    await this.#service.comeBack();
    await this.#service.received.waitFor('delete', { count: 100, timeoutMs: 20_000 });
    await this.#look();
    await finished;
    await this.#look();
  }

  async #refused(app: INestApplication): Promise<void> {
    const [erasures, debate] = [app.get(DebateSpaceErasures), app.get(DebateSpaceService)];
    const bulk = { mode: 'delete', reference: 'refused' } as const;
    const sources: Iterable<unknown>[] = [
      [uidOf('refused'), ''],
      [uidOf('refused'), `${UID}\n${EMAIL}`],
      [uidOf('refused'), { uid: UID, name: NAME }],
      [Buffer.from(`uid\n${UID}`)],
      `${UID} ${EMAIL}`,
    ];
    for (const source of sources)
      await this.#failing(() => erasures.requestMany(source as Iterable<string>, bulk));
    await this.#failing(() => erasures.request({ uid: `${UID}\n`, mode: 'delete' }));
    await this.#failing(() =>
      erasures.request({ uid: uidOf('refused'), mode: 'delete', reference: `\n${EMAIL}` }),
    );
    await erasures.dryRun(uidsOf(['refused', 'vetoed']));
    const all = await lastValueFrom(from(debate.users({ perPage: 100 })).pipe(toArray()));
    expect(JSON.stringify(all)).toContain(NAME);
    expect(await debate.findUser(uidOf('refused'))).toMatchObject({ uid: uidOf('refused') });
    await this.#failing(() => erasures.status('refused')); // the lists have left no reference
  }

  /** The service will not, until an operator has talked to it. */
  async #givenUp(app: INestApplication): Promise<void> {
    const erasures = app.get(DebateSpaceErasures);
    const fix = this.#service.faults.add({ kind: 'status', status: 422, body: echo, operation: 'delete' });
    const parked = next(app, 'erasure-parked');
    await erasures.request({ uid: uidOf('refused'), mode: 'delete', reference: 'in the end' });
    await parked;
    await this.#look();
    fix();
    const finished = next(app, 'erasure-finished');
    await erasures.pause('in the end');
    await erasures.resume('in the end');
    await erasures.retry('in the end');
    await finished;
  }

  async #tell(app: INestApplication): Promise<void> {
    const erasures = app.get(DebateSpaceErasures);
    for await (const status of erasures.list()) {
      this.reported.push(status, await erasures.status(status.reference));
      for await (const receipt of erasures.receipts(status.reference)) this.receipts.push(receipt);
    }
    for await (const receipt of erasures.receiptsOf(uidOf('deleted'))) this.reported.push(receipt);
    this.reported.push(await app.get(DebateSpaceOutbox).stats());
    for (const { uid } of await app.get(DebateSpaceOutbox).parked()) this.parked.push(uid);
  }
}

function next(app: INestApplication, type: DebateSpaceEvent['type'], count = 1): Promise<unknown> {
  const those = app.get(DebateSpaceEvents).events$.pipe(filter((event) => event.type === type));
  return firstValueFrom(those.pipe(take(count), toArray()));
}

for (const kind of keptPlaces) {
  kind.describe(`of users who were erased, with the storage ${kind.name}, nothing remains`, () => {
    let place: KeptPlace;
    let service: DebateSpaceSimulator;
    let story: Story;
    beforeAll(async () => {
      place = await kind.take();
      service = await startService({ rateLimit: false, users: [...single, ...listed].map(userOf) });
      story = new Story(place, service);
      const print = (chunk: unknown): boolean => story.printed.push(String(chunk)) > 0;
      for (const stream of [process.stdout, process.stderr])
        jest.spyOn(stream, 'write').mockImplementation(print);
      for (const method of ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const)
        jest.spyOn(console, method).mockImplementation((...words) => void print(inspect(words)));
      jest.spyOn(Math, 'random').mockReturnValue(0); // no backoff
      try {
        await story.run();
      } finally {
        jest.restoreAllMocks();
      }
    }, 300_000);
    afterAll(async () => {
      await service.stop();
      await place.leave();
    });

    /** What is found of anything personal, in any form. */
    const traces = (where: readonly (Buffer | string)[]): readonly string[] => {
      const bytes = where.map((some) => Buffer.from(some));
      return PERSONAL.flatMap((part) => tracesOf(part, bytes).map((form) => `${part} in ${form}`));
    };
    const shown = (value: unknown): string[] => [
      JSON.stringify(value),
      inspect(value, { depth: Infinity, showHidden: true, maxArrayLength: null, maxStringLength: null }),
    ];

    it('at the service, except the users who were not to be erased after all', () => {
      const left = service.users.all().flatMap(({ uid }) => uid ?? []);
      expect(left.toSorted()).toEqual([uidOf('canceled'), uidOf('vetoed')]);
    });

    it('of their logouts, except those of the user whom a veto has kept', () => {
      expect(story.parked).toEqual([uidOf('vetoed')]); // who remains a user, and is logged out like any other
    });

    it('in what the storage keeps and kept, while they waited and afterwards', () => {
      expect(traces(story.kept)).toEqual([]);
      const [receipt] = story.receipts;
      expect(tracesOf(receipt?.uidHash ?? '', story.kept)).toContain('UTF-8'); // it was looked at the right place
    });

    it('in the log, at any level, or on the console', () => {
      expect(story.printed.join('\n')).toContain('erasure the list is finished: 300 done');
      expect(traces(story.printed)).toEqual([]);
    });

    it('in the events of erasures', () => {
      const named: DebateSpaceEvent['type'][] = [
        'session-ended',
        'logout-delivered',
        'logout-retrying',
        'logout-parked',
      ];
      const unnamed = story.events.filter(({ type }) => !named.includes(type));
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
      expect(traces(shown(unnamed))).toEqual([]);
    });

    it('in receipts, in what is reported about erasures, and in what waits', () => {
      const of = (wanted: string) => story.receipts.filter(({ outcome }) => outcome === wanted);
      expect(of('erased')).toHaveLength(listed.length + single.length - 2);
      expect(of('vetoed')).toMatchObject([{ reason: 'legal hold' }]);
      expect(traces([...shown(story.receipts), ...shown(story.reported)])).toEqual([]);
    });

    it('in errors', () => {
      expect(story.errors).toHaveLength(10);
      expect(traces(story.errors.flatMap((error) => [...shown(error), String(error)]))).toEqual([]);
    });
  });
}
