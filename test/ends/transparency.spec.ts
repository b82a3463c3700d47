import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { originalProcess } from 'debate-space-fixtures/original-process.js';
import { startService, using } from 'debate-space-fixtures/service.js';
import { storageKinds, type StoragePlaces } from 'debate-space-fixtures/storage-engines.js';
import { actions, callbackOnly, type Action } from './transparency/actions.js';
import { platforms, type Platform } from './transparency/platforms.js';
import { endsIn, TableHost, whereCallsMayWait, type Cell, type Ends } from './transparency/play.js';
import { ownStoreOfFastify, type StoreKind } from './transparency/stores.js';

const storages = storageKinds.filter(({ name }) => ['memory', 'lmdb'].includes(name));

/** A host without the plugin and its twins with the plugin, which play the same cells one after the other. */
class Hosts {
  /** Of the sessions that ended, by the uids of a host with the plugin. */
  readonly expected: { readonly cell: string; readonly uid: string; readonly ends: Ends }[] = [];
  #plain: TableHost | undefined;
  #watched: { readonly storage: string; readonly host: TableHost }[] = [];
  #played = 0;

  constructor(
    /** Begins the uids of these hosts. */
    private readonly group: string,
    private readonly platform: Platform,
    private readonly kind: StoreKind,
  ) {}

  async start(service: DebateSpaceSimulator, places: readonly StoragePlaces[]): Promise<void> {
    const { group, platform, kind } = this;
    this.#plain = await TableHost.start(platform, kind, `${group}-plain-`, undefined);
    for (const [n, { name: storage }] of storages.entries()) {
      const options = using(service, { storage: places[n]?.place() });
      const host = await TableHost.start(platform, kind, `${group}-${storage}-`, options);
      this.#watched.push({ storage, host });
    }
  }

  /** @returns what the plain host shows, and each host with the plugin */
  async play(cell: Cell): Promise<{ readonly expected: unknown; readonly received: unknown }> {
    const user = `alice-${(this.#played += 1)}`;
    const [plain, ...watched] = await Promise.all(this.#hosts().map((host) => host.play(cell, user)));
    const { action, style, gone } = cell;
    const name = `${style.name}${gone ? ', the client gone' : ''}`;
    const mayWait = action.readsFirst && !this.kind.synchronous;
    const seen = (played: typeof plain): unknown =>
      played && mayWait ? whereCallsMayWait(played, this.kind) : played;
    const of = (played: (n: number) => typeof plain): unknown =>
      this.#watched.map(({ storage }, n) => ({ name, storage, ...(seen(played(n)) as object) }));
    if (plain)
      for (const { host, storage } of this.#watched)
        this.expected.push({
          cell: `${action.name}, ${name}, ${storage}`,
          uid: host.prefix + user,
          ends: endsIn(plain, cell, user),
        });
    return { expected: of(() => plain), received: of((n) => watched[n]) };
  }

  async stop(): Promise<void> {
    const hosts = this.#hosts();
    this.#plain = undefined;
    this.#watched = [];
    await Promise.all(hosts.map((host) => host.stop()));
  }

  #hosts(): TableHost[] {
    return [this.#plain ?? [], ...this.#watched.map(({ host }) => host)].flat();
  }
}

let service: DebateSpaceSimulator;
let places: StoragePlaces[];
const faults: string[] = [];
const note = (error: unknown): void => {
  faults.push(String(error));
};
const original = originalProcess();
const listeners = original.listeners('unhandledRejection');

beforeAll(async () => {
  service = await startService();
  places = await Promise.all(storages.map((storage) => storage.start()));
  original.removeAllListeners('unhandledRejection').on('unhandledRejection', note);
  original.setUncaughtExceptionCaptureCallback(note);
});

afterAll(async () => {
  original.setUncaughtExceptionCaptureCallback(null);
  original.removeAllListeners('unhandledRejection');
  for (const listener of listeners) original.on('unhandledRejection', listener);
  await service.stop();
  for (const place of places) await place.stop();
});

const groups = platforms.flatMap((platform) =>
  platform.stores.flatMap((kind) =>
    [false, true].map((endsAll) => {
      const played = actions.filter((action) => (action.endsAll ?? false) === endsAll);
      const rows = played.filter(({ styles }) => styles(platform, kind).length > 0);
      const name = `${platform.name} and a store that is ${kind.name}${endsAll ? ', cleared' : ''}`;
      return { name, platform, kind, rows };
    }),
  ),
);

describe.each(groups.filter(({ rows }) => rows.length > 0))('$name:', (played) => {
  const { platform, kind, rows } = played;
  const group = `group${groups.indexOf(played)}`;
  const hosts = new Hosts(group, platform, kind);
  beforeAll(() => hosts.start(service, places));
  afterAll(() => hosts.stop());

  it.each(rows)('the host does the same with the plugin as without it: $name', async (action: Action) => {
    const cells = action
      .styles(platform, kind)
      .flatMap((style) => [false, true].map((gone): Cell => ({ action, style, gone })));
    const [expected, received]: [unknown[], unknown[]] = [[], []];
    for (const cell of cells) {
      const seen = await hosts.play(cell);
      expected.push(seen.expected);
      received.push(seen.received);
    }
    expect(faults.splice(0)).toEqual([]);
    expect(received).toEqual(expected);
  });

  it('each end is reported once, and nothing else is', async () => {
    await hosts.stop();
    const { logouts } = service.received;
    const cells = hosts.expected.map(({ cell, uid, ends }) => {
      const reported = logouts.filter((logout) => logout === uid).length;
      const isRight = reported >= ends.least && reported <= ends.most;
      return isRight ? [] : [`${cell}: ${Object.values(ends).join('-')} ended, ${reported} reported`];
    });
    expect(cells.flat()).toEqual([]);
    expect(faults.splice(0)).toEqual([]);
  });
});

const logouts = [
  { name: 'session.destroy(callback), not awaited', action: 'session.destroy()', gone: false },
  { name: 'session.regenerate(callback), not awaited', action: 'session.regenerate()', gone: false },
  { name: 'session.destroy(callback) after the client has gone', action: 'session.destroy()', gone: true },
].flatMap((logout) => storages.map(({ name: storage }, n) => ({ ...logout, storage, n })));

describe('with @fastify/session and its own store, whose calls are over when they return,', () => {
  it.each(logouts)(
    'no user stays logged in, and each is reported once: $name, $storage',
    async ({ action: called, gone, storage, n }) => {
      const [platform] = platforms.filter(({ express }) => !express) as [Platform];
      const [action] = actions.filter(({ name }) => name === called) as [Action];
      const prefix = `${called}-${gone ? 'gone' : 'there'}-${storage}-`.replaceAll('()', '');
      const options = using(service, { storage: places[n]?.place() });
      const host = await TableHost.start(platform, ownStoreOfFastify, prefix, options);
      const users = Array.from({ length: 6 }, (_, index) => `alice-${index}`);
      const whoIs: string[] = [];
      for (const user of users) {
        const { whoAmI } = await host.play({ action, style: callbackOnly, gone }, user);
        whoIs.push(whoAmI[0]);
      }
      await host.stop();
      expect(whoIs).toEqual(users.map(() => 'nobody'));
      const reported = service.received.logouts.filter((uid) => uid.startsWith(prefix));
      expect(reported.toSorted()).toEqual(users.map((user) => prefix + user));
    },
  );
});
