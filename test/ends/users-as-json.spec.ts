import { describe, expect, it } from '@jest/globals';
import { Logger, type LoggerService } from '@nestjs/common';
import session from 'express-session';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { logInTo } from 'debate-space-fixtures/browser.js';
import { eventsOf, firstEvent } from 'debate-space-fixtures/events.js';
import { FastifyHost } from 'debate-space-fixtures/fastify-host.js';
import { fastifyLogins } from 'debate-space-fixtures/fastify-logins.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';
import { SessionHost } from 'debate-space-fixtures/session-host.js';
import { destroySession } from 'debate-space-fixtures/session-jobs.js';
import { filesOf, tracesOf } from 'debate-space-fixtures/traces.js';
import type { UserShape } from 'debate-space-fixtures/user-shape.js';

const EMAIL = 'ada+7f3k@post.example';
const PASSWORD = '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68L';
const record = (id: string, lastLogin = 1): string =>
  JSON.stringify({ email: EMAIL, id: Number(id), lastLogin, password: PASSWORD });
const idIn = (json: unknown): string => String((JSON.parse(json as string) as { id: number }).id);
/** `serializeUser((user, done) => done(null, JSON.stringify(user)))`. */
const users: UserShape = {
  user: (id) => record(id),
  name: (json) => (json === undefined ? json : idIn(json)),
};

const scene = scenario();
const lines: unknown[] = [];
const keep = (...parts: unknown[]): void => void lines.push(parts);
const logger: LoggerService = { log: keep, error: keep, warn: keep, debug: keep, verbose: keep, fatal: keep };

/** Passes on to the service, and keeps every byte that it was sent. */
async function startTap(target: string): Promise<{ readonly url: string; readonly sent: Buffer[] }> {
  const sent: Buffer[] = [];
  const server = createServer((host) => {
    const service = connect(Number(new URL(target).port), '127.0.0.1');
    host.on('data', (bytes) => sent.push(bytes));
    for (const socket of [host, service]) socket.on('error', () => service.destroy());
    host.pipe(service).pipe(host);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  scene.afterwards(() => new Promise((resolve) => server.close(resolve)));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent };
}

interface FastifySession {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  destroy(): Promise<void>;
}

type Host = Pick<SessionHost, 'app' | 'url' | 'stop'>;

const stacks: readonly [string, (debateSpace: DebateSpaceModuleOptions) => Promise<Host | FastifyHost>][] = [
  [
    'express-session under passport',
    (debateSpace) =>
      SessionHost.start({
        stack: 'passport',
        users,
        debateSpace,
        act: (request) => {
          if (request.query.out !== undefined) return destroySession(request);
          const { passport } = request.session as unknown as { passport: { user: string } };
          passport.user = record(idIn(passport.user), 2);
        },
      }),
  ],
  [
    '@fastify/session under @fastify/passport',
    (debateSpace) =>
      FastifyHost.start({
        login: fastifyLogins.passport(new session.MemoryStore(), undefined, users),
        debateSpace,
        act: ({ request }) => {
          const own = request.session as unknown as FastifySession;
          if (request.url.includes('out')) return own.destroy();
          own.set('passport', record(idIn(own.get('passport')), 2));
        },
      }),
  ],
];
describe('a user whose session has them as JSON', () => {
  it.each(stacks)(
    'is logged out by the id in it, and nothing else of it leaves: %s',
    async (_name, start) => {
      const path = await mkdtemp(join(tmpdir(), 'json-'));
      scene.afterwards(() => rm(path, { recursive: true }));
      const tap = await startTap(scene.service.url);
      const storage = sqliteStorage({ path: join(path, 'debate-space.db') });
      const options = using(scene.service, { authUrl: tap.url, storage });
      const host = await scene.add<Host | FastifyHost>(start(options));
      Logger.overrideLogger(logger);
      const events = eventsOf(host.app);
      const browser = await logInTo(host, '4711');
      await browser.post('/act');
      expect(await browser.get('/whoami')).toBe('4711');
      const delivered = firstEvent(host.app, 'logout-delivered');
      await browser.post('/act?out');
      await delivered;
      const kept = await filesOf(path);
      await scene.stop();
      Logger.overrideLogger(false);

      expect(scene.service.received.logouts).toEqual(['4711']);
      expect(events.filter(({ type }) => type === 'session-ended')).toHaveLength(1);
      const told = Buffer.from(inspect([events, lines], { depth: Infinity, maxStringLength: null }));
      const everywhere = [...tap.sent, Buffer.concat(tap.sent), ...kept, ...(await filesOf(path)), told];
      for (const secret of [EMAIL, PASSWORD, 'lastLogin']) expect(tracesOf(secret, everywhere)).toEqual([]);
      // The search finds what is there.
      expect(tracesOf('logout_token', everywhere)).toContain('UTF-8');
      expect(tracesOf('"sub":"4711"', everywhere)).not.toEqual([]);
      expect(lines.length).toBeGreaterThan(0);
    },
  );
});
