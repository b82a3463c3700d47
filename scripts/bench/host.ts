// What the plugin costs a host. `session`: the CPU time of a request that ends nothing, with three apps in one process – two
// processes differ by more than what is measured. `start`: the import and the start of an app. `logout`: the answer of a logout.
import 'reflect-metadata';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { Controller, Get, HttpCode, Module, Post, Req, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { DebateSpaceModule, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { Pool } from 'undici';
import type { EngineName } from '../test-crash/engines.js';
import {
  ask,
  inTurn,
  keys,
  kill,
  line,
  median,
  openEngine,
  ratios,
  runProgram,
  start as begin,
  storagePlaces,
  type BenchOptions,
} from './measuring.js';

const BATCH = 160;
const WARM_UP = 6_000;
const ROUNDS = 250;
const GUARD_ROUNDS = 100;
/** A busy machine may spoil a process; of what is too slow, none is fast. */
const GUARD_TRIES = 3;
const CONNECTIONS = 8;
const LOGOUTS = 20;
const NOWHERE = 'http://127.0.0.1:9'; // nobody listens: the host is measured, and not the service
const secret = 'only for benchmarks, and long enough for it';

/** `most`: with the plugin ÷ without it, at most. */
const scenarios = [
  { platform: 'express', isLoggedIn: false, most: 1.06 },
  { platform: 'express', isLoggedIn: true, most: 1.12 },
  { platform: 'fastify', isLoggedIn: false, most: 1.08 },
  { platform: 'fastify', isLoggedIn: true, most: 1.3 },
] as const;
type Scenario = (typeof scenarios)[number];
interface Apps {
  readonly urls: readonly string[];
}

/** With `--guard`, fails where the plugin costs more than `most` in each of three processes. */
export async function session({ pairs, guard }: BenchOptions): Promise<void> {
  console.log(`CPU time of a request, with the plugin ÷ without; batches of ${BATCH} in turn`);
  for (const scenario of scenarios) {
    const measured: { readonly control: number; readonly plugin: number }[] = [];
    const isGood = () => measured.some(({ control, plugin }) => plugin / control <= scenario.most);
    while (measured.length < (guard ? GUARD_TRIES : pairs) && !(guard && isGood()))
      measured.push(await cost(scenario, guard ? GUARD_ROUNDS : ROUNDS));
    const name = `${scenario.platform}, ${scenario.isLoggedIn ? 'logged in' : 'anonymous'}`;
    for (const of of ['control', 'plugin'] as const)
      line(
        `${name}, ${of}`,
        measured.map((each) => each[of]),
      );
    if (guard && !isGood()) throw new Error(`${name}: the plugin costs more than × ${scenario.most}`);
  }
}

/** Of one process. */
async function cost({ platform, isLoggedIn }: Scenario, rounds: number) {
  const { child, urls } = await begin<Apps>('./host.ts', ['apps', platform]);
  const pools = urls.map((url) => new Pool(url, { connections: CONNECTIONS }));
  const subjects = [];
  for (const pool of pools) {
    const headers = isLoggedIn ? await logIn(pool) : {};
    const load = async (amount: number): Promise<void> => {
      let left = amount;
      const browser = async (): Promise<void> => {
        while (left-- > 0) await answerOf(pool, 'GET', '/hello', headers);
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, browser));
    };
    await load(WARM_UP); // the rounds measure what is compiled
    subjects.push(async () => {
      const before = (await ask(child, 'cpu')) as number;
      await load(BATCH);
      return ((await ask(child, 'cpu')) as number) - before;
    });
  }
  const [plain, control, plugin] = await inTurn(subjects, rounds);
  for (const pool of pools) await pool.close();
  await kill(child);
  return { control: median(ratios(control, plain)), plugin: median(ratios(plugin, plain)) };
}

/** Without the loader of the scripts, as a host is that has been built. */
export async function start({ pairs, rounds }: BenchOptions): Promise<void> {
  const options = JSON.stringify({ ...keys, applicationName: 'demo', authUrl: NOWHERE });
  const plugin = `(await import('nestjs-debate-space')).DebateSpaceModule.forRoot(${options})`;
  const code = (imported: string): string => `
    await import('reflect-metadata');
    const { Module } = await import('@nestjs/common');
    const { NestFactory } = await import('@nestjs/core');
    class HostModule {}
    Module({ imports: [${imported}] })(HostModule);
    await (await NestFactory.create(HostModule, { logger: false })).init();
    console.log(performance.now());
    process.exit();`;
  const subjects = [plugin, '', ''].map((imported) => async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', code(imported)]);
    const [printed] = (await once(child.stdout, 'data')) as [Buffer];
    await once(child, 'exit');
    return Number(printed);
  });
  const [withPlugin = [], without = [], control = []] = await inTurn(subjects, pairs * rounds);
  const more = (times: readonly number[]): number[] => times.map((ms, n) => ms - (without[n] ?? NaN));
  line('the start of an app without the plugin', without, ' ms', 0);
  line('more with the plugin', more(withPlugin), ' ms', 0);
  line('more without it once more (control)', more(control), ' ms', 0);
}

/** What the answer of a logout waits for, beside a host without the plugin. */
export async function logout({ pairs, rounds, engines }: BenchOptions): Promise<void> {
  const places = await storagePlaces();
  const kinds = ['no plugin', 'control', ...engines] as const;
  const times = kinds.map((): number[] => []);
  for (let pass = 0; pass < pairs; pass += 1) {
    const hosts = [];
    for (const kind of kinds) {
      const place = kind === 'no plugin' || kind === 'control' ? '' : places[kind];
      hosts.push(await begin<Apps>('./host.ts', ['logout', kind, place]));
    }
    const pools = hosts.map(({ urls: [url = ''] }) => new Pool(url, { connections: CONNECTIONS }));
    const subjects = pools.map((pool) => async () => {
      const each: number[] = [];
      for (let n = 0; n < LOGOUTS; n += 1) {
        const cookie = await logIn(pool);
        const begun = performance.now();
        await answerOf(pool, 'POST', '/logout', cookie);
        each.push(performance.now() - begun);
      }
      return median(each);
    });
    for (const [n, values] of (await inTurn(subjects, rounds)).entries()) times[n]?.push(...values);
    for (const pool of pools) await pool.close();
    for (const { child } of hosts) await kill(child);
  }
  const [none = []] = times;
  line('a logout without the plugin', none, ' ms');
  for (const [n, kind] of kinds.entries())
    if (n > 0)
      line(`more with ${kind}`, times[n]?.map((ms, round) => ms - (none[round] ?? NaN)) ?? [], ' ms');
}

async function logIn(pool: Pool): Promise<{ readonly cookie: string }> {
  const { headers } = await answerOf(pool, 'POST', '/login', {});
  const [cookie = ''] = [headers['set-cookie'] ?? []].flat();
  return { cookie: cookie.replace(/;.*/, '') };
}

async function answerOf(pool: Pool, method: 'GET' | 'POST', path: string, headers: Record<string, string>) {
  const answer = await pool.request({ path, method, headers });
  await answer.body.dump();
  if (answer.statusCode !== 200) throw new Error(`${path} answered with ${answer.statusCode}`);
  return answer;
}

@Controller()
class HostController {
  @Get('hello')
  hello(): string {
    return 'hello';
  }

  @Post('login')
  @HttpCode(200)
  login(@Req() request: { readonly session: { user?: string } }): string {
    request.session.user = 'alice';
    return 'hello alice';
  }

  @Post('logout')
  @HttpCode(200)
  async logout(@Req() request: { session: { destroy(done: () => void): void } }): Promise<string> {
    await new Promise<void>((resolve) => {
      request.session.destroy(resolve);
    });
    return 'bye';
  }
}

/** @param options of the plugin; a host without it when they are missing */
async function host(platform: string, options?: Partial<DebateSpaceModuleOptions>): Promise<string> {
  const plugin = { ...keys, applicationName: 'demo', authUrl: NOWHERE, ...options };
  @Module({ imports: options ? [DebateSpaceModule.forRoot(plugin)] : [], controllers: [HostController] })
  class HostModule {}

  const app = await (platform === 'express' ? expressApp(HostModule) : fastifyApp(HostModule));
  await app.listen(0, '127.0.0.1');
  // A busy machine may stall a browser for longer than Node.js keeps an idle connection.
  (app.getHttpServer() as Server).keepAliveTimeout = 60_000;
  return app.getUrl();
}

async function expressApp(module: object): Promise<INestApplication> {
  const { default: session } = await import('express-session');
  const app = await NestFactory.create(module, { logger: false });
  app.use(session({ secret, resave: false, saveUninitialized: false }));
  return app;
}

async function fastifyApp(module: object): Promise<INestApplication> {
  const { FastifyAdapter } = await import('@nestjs/platform-fastify');
  const { default: cookie } = await import('@fastify/cookie');
  const { default: session } = await import('@fastify/session');
  const app = await NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(), {
    logger: false,
  });
  await app.register(cookie);
  await app.register(session, { secret, cookie: { secure: false }, saveUninitialized: false });
  return app;
}

await runProgram({
  /** Answers with the CPU time of its process, user and system, in µs. */
  apps: async (platform = '') => {
    const urls = [await host(platform), await host(platform), await host(platform, {})];
    process.on('message', () => {
      const { user, system } = process.cpuUsage();
      process.send?.(user + system);
    });
    process.send?.({ urls });
  },
  logout: async (kind = '', place = '') => {
    const isPlain = kind === 'no plugin' || kind === 'control';
    const opened = isPlain ? undefined : await openEngine(kind as EngineName, place);
    const options = opened && { storage: opened.storage, storageKey: opened.storageKey };
    process.send?.({ urls: [await host('express', options)] });
  },
});
