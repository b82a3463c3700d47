import { afterEach, beforeEach } from '@jest/globals';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceModule, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';
import { runCli } from '../run-cli.js';
import { settingsOf } from '../settings.js';

export const keys = {
  DEBATE_SPACE_API_KEY: 'api-key-of-a-test',
  DEBATE_SPACE_SECRET_KEY: 'a secret key of a test, long enough for HS256',
};

/** The environment that makes the command line use this service. */
export function configuredFor(
  service: DebateSpaceSimulator,
  more: NodeJS.ProcessEnv = {},
): NodeJS.ProcessEnv {
  return {
    ...keys,
    DEBATE_SPACE_APPLICATION_NAME: service.applicationName,
    DEBATE_SPACE_AUTH_URL: service.url,
    ...more,
  };
}

export interface Terminal {
  readonly env?: NodeJS.ProcessEnv;
  readonly folder?: string;
  /** Whether a person sits there. Default: only when something is typed. */
  readonly isTerminal?: boolean;
  /** What the person types when asked. */
  readonly typed?: string;
  /** What is piped into it. */
  readonly piped?: string;
  /** Whether its stdout is a terminal. Default: false. */
  readonly isOutTerminal?: boolean;
  /** The system's code with which stdout refuses everything. */
  readonly stdoutError?: string;
}

export interface RunningCommand {
  readonly code: Promise<number>;
  readonly out: () => string;
  readonly err: () => string;
  /** Resolves when stderr has this text. */
  readonly waitForStderr: (text: string) => Promise<void>;
  /** A person types a line. */
  readonly type: (line: string) => void;
  /** Ctrl-C. */
  readonly interrupt: () => void;
  /** The reader of stdout goes away, as `head` does. */
  readonly closeStdout: () => void;
}

/** Runs the command line in this process. */
export function start(args: string, terminal: Terminal = {}): RunningCommand {
  const written = { out: '', err: '' };
  const events = new EventEmitter();
  const interruption = new AbortController();
  const sink = (name: 'out' | 'err', isTTY = false, refusal?: string): Writable & { isTTY: boolean } => {
    const stream = new Writable({
      write(chunk, _, done) {
        if (refusal !== undefined) {
          done(Object.assign(new Error('stdout fails'), { code: refusal }));
          return;
        }
        written[name] += String(chunk);
        events.emit(name);
        done();
      },
    });
    return Object.assign(stream, { isTTY });
  };
  const stdin = stdinOf(terminal);
  const stdout = sink('out', terminal.isOutTerminal, terminal.stdoutError);
  const code = runCli(args.split(' '), {
    env: terminal.env ?? {},
    folder: terminal.folder ?? '/nowhere',
    stdin,
    stdout,
    stderr: sink('err'),
    interrupted: interruption.signal,
  });
  return {
    code,
    out: () => written.out,
    err: () => written.err,
    waitForStderr: async (text) => {
      while (!written.err.includes(text)) await once(events, 'err');
    },
    type: (line) => {
      stdin.push(`${line}\n`);
    },
    interrupt: () => {
      interruption.abort();
    },
    closeStdout: () => {
      stdout.destroy(Object.assign(new Error('nobody reads'), { code: 'EPIPE' }));
    },
  };
}

/** Runs the command line in this process to its end. */
export async function run(
  args: string,
  terminal?: Terminal,
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const { code, out, err } = start(args, terminal);
  return { code: await code, out: out(), err: err() };
}

function stdinOf({
  typed,
  piped,
  isTerminal = typed !== undefined,
}: Terminal): Readable & { isTTY?: boolean } {
  if (piped !== undefined) return Readable.from([Buffer.from(piped)]);
  const stdin = Object.assign(new PassThrough(), { isTTY: isTerminal });
  if (typed !== undefined) stdin.write(`${typed}\n`);
  return stdin;
}

/** For each test of a spec: a simulated service with users, and an empty folder. */
export class Scene {
  env: NodeJS.ProcessEnv = {};
  folder = '';
  readonly #apps: INestApplicationContext[] = [];
  #service: DebateSpaceSimulator | undefined;

  constructor(uids: readonly string[] = ['ada', 'ben', 'cleo']) {
    beforeEach(async () => {
      this.folder = await mkdtemp(join(tmpdir(), 'cli-'));
      const [apiKey, secretKey] = [keys.DEBATE_SPACE_API_KEY, keys.DEBATE_SPACE_SECRET_KEY];
      const users = uids.map((uid) => ({ uid }));
      this.#service = await DebateSpaceSimulator.start({ apiKey, secretKey, users, rateLimit: false });
      this.env = configuredFor(this.service, { DEBATE_SPACE_RATE_LIMIT: 'off' });
    });
    afterEach(async () => {
      for (const app of this.#apps.splice(0)) await app.close();
      await this.service.stop();
      await rm(this.folder, { recursive: true });
    });
  }

  get service(): DebateSpaceSimulator {
    if (!this.#service) throw new Error('A scene has a service while a test runs.');
    return this.#service;
  }

  get uids(): readonly (string | null)[] {
    return this.service.users.all().flatMap(({ uid }) => uid ?? []);
  }

  /** Makes the file of a storage, as an app does that opens it, and has the commands use it. @returns its path */
  async useSqlite(): Promise<string> {
    const path = join(this.folder, 'debate-space.db');
    const { storage } = await sqliteStorage({ path }).open('demo');
    await storage.close();
    this.env.DEBATE_SPACE_STORAGE = `sqlite:${path}`;
    return path;
  }

  /** Starts an app, with its own options, on the storage of the commands. */
  async startApp(own: Partial<DebateSpaceModuleOptions> = {}): Promise<INestApplicationContext> {
    const { options, storage } = settingsOf(this.env, this.folder);
    const module = DebateSpaceModule.forRoot({
      ...options,
      storage: sqliteStorage({ path: storage.url }),
      ...own,
    });
    const app = await NestFactory.createApplicationContext(module, { logger: false });
    this.#apps.push(app);
    return app;
  }

  /** Writes a file into the folder. */
  write(name: string, text: string | Uint8Array): Promise<void> {
    return writeFile(join(this.folder, name), text);
  }

  run(args: string, terminal: Terminal = {}): ReturnType<typeof run> {
    return run(args, { env: this.env, folder: this.folder, ...terminal });
  }

  start(args: string, terminal: Terminal = {}): RunningCommand {
    return start(args, { env: this.env, folder: this.folder, ...terminal });
  }

  /** The answer with `--json`. */
  async answer(args: string): Promise<unknown> {
    return JSON.parse((await this.run(`${args} --json`)).out);
  }

  /** The answers with `--json`, one a line. */
  async answers(args: string): Promise<unknown[]> {
    const { out } = await this.run(`${args} --json`);
    return out.split('\n').flatMap((line): unknown[] => (line === '' ? [] : [JSON.parse(line)]));
  }
}
