import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { URLSearchParams } from 'node:url';
import type { Clock } from './clock.js';
import { atExit } from './leftovers.js';
import type { AppEvent, AppSettings, FromApp, FromParent, Question } from './messages.js';
import { programs } from './programs.js';
import type { Sessions } from './session-store.js';

/** One app process, that is killed and started again. */
export class Host {
  /** Where it listens; `undefined` while it does not. */
  url: string | undefined;
  #child: ChildProcess | undefined;
  /** Those whose end is nothing unusual. */
  readonly #wanted = new WeakSet<ChildProcess>();
  readonly #settings: AppSettings;
  readonly #sessions: Sessions | undefined;
  readonly #tell: (event: AppEvent) => void;
  #asked = 0;
  readonly #answers = new Map<number, (answer: unknown) => void>();

  /**
   * @param settings for the program, which is named among them
   * @param sessions what answers its session store, if it has one
   * @param tell is called with every event of the plugin that is worth it, and when the process ends unasked
   */
  constructor(settings: AppSettings, sessions: Sessions | undefined, tell: (event: AppEvent) => void) {
    this.#settings = settings;
    this.#sessions = sessions;
    this.#tell = tell;
  }

  /** @param clock the machine's own when absent */
  start(clock?: Clock): Promise<void> {
    const preload = clock && new URL(`clock.js?${queryOf(clock)}`, programs());
    const flags = process.execArgv.filter((flag) => flag === '--expose-gc');
    const child = fork(new URL(this.#settings.program, programs()), [JSON.stringify(this.#settings)], {
      execArgv: [...flags, ...(preload ? ['--import', preload.href] : [])],
    });
    const wipe = atExit(() => child.kill('SIGKILL'));
    this.#child = child;
    child.on('message', (message) => {
      this.#heard(child, message as FromApp);
    });
    child.on('error', () => undefined); // a question to one that has just been killed
    child.once('exit', (code, signal) => {
      wipe();
      this.url = undefined;
      if (!this.#wanted.has(child))
        this.#tell({ type: 'died', cause: signal ?? `exit code ${String(code)}` });
      for (const answer of this.#answers.values()) answer(undefined);
      this.#answers.clear();
    });
    return new Promise((resolve) => {
      child.once('ready', resolve);
      child.once('exit', () => {
        resolve();
      });
    });
  }

  /** The process is about to end itself. Resolves when it is gone. */
  async ended(): Promise<void> {
    if (!this.#child) return;
    this.#wanted.add(this.#child);
    await once(this.#child, 'exit');
  }

  /** Resolves when the process is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    this.#wanted.add(child);
    if (signal === 'SIGKILL') this.url = undefined; // after SIGTERM it may listen for a while
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }

  /** @returns `undefined` when the app does not answer, or the process was killed meanwhile */
  ask(question: Question): Promise<unknown> {
    this.#asked += 1;
    return new Promise((resolve) => {
      this.#answers.set(this.#asked, resolve);
      if (this.#child) send(this.#child, { ...question, question: this.#asked });
    });
  }

  #heard(child: ChildProcess, message: FromApp): void {
    if ('store' in message) {
      if (this.#sessions) send(child, this.#sessions.answer(message));
    } else if ('ready' in message) {
      if (message.ready !== true) this.url = message.ready;
      child.emit('ready');
    } else if ('event' in message) {
      this.#tell(message.event);
    } else {
      this.#answers.get(message.question)?.(message.answer);
      this.#answers.delete(message.question);
    }
  }
}

/** To a process that may be dead by now. */
function send(child: ChildProcess, message: FromParent): void {
  child.send(message, () => undefined);
}

function queryOf(clock: Clock): string {
  const query = Object.entries(clock).map(([name, value]): [string, string] => [name, String(value)]);
  return new URLSearchParams(query).toString();
}
