import { EventEmitter, once } from 'node:events';
import { PassThrough, Readable, Writable } from 'node:stream';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { runCli } from '../run-cli.js';

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
