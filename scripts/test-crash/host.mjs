import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath, URLSearchParams } from 'node:url';
import { atExit } from './leftovers.mjs';

/** One app process, that is killed and started again. */
export class Host {
  /** Where it listens; `undefined` while it does not. */
  url;
  #child;
  #settings;
  #sessions;
  #tell;
  #asked = 0;
  #answers = new Map();

  /**
   * @param settings for the program, which is named among them
   * @param sessions what answers its session store, if it has one
   * @param tell is called with every event of the plugin that is worth it, and when the process ends unasked
   */
  constructor(settings, sessions, tell) {
    this.#settings = settings;
    this.#sessions = sessions;
    this.#tell = tell;
  }

  /** @param clock for `clock.mjs`: `{ offsetMs }`, or `{ speed, since }`; the machine's own when absent */
  start(clock) {
    const preload = clock && new URL(`clock.mjs?${new URLSearchParams(clock)}`, import.meta.url);
    const program = fileURLToPath(new URL(this.#settings.program, import.meta.url));
    const child = fork(program, [JSON.stringify(this.#settings)], {
      execArgv: preload ? ['--import', preload.href] : [],
    });
    const wipe = atExit(() => child.kill('SIGKILL'));
    this.#child = child;
    child.on('message', (message) => this.#heard(child, message));
    child.on('error', () => undefined); // a question to one that has just been killed
    child.once('exit', (code, signal) => {
      wipe();
      this.url = undefined;
      if (!child.wanted) this.#tell({ type: 'died', cause: signal ?? `exit code ${code}` });
      for (const answer of this.#answers.values()) answer(undefined);
      this.#answers.clear();
    });
    return new Promise((resolve) => {
      child.once('ready', resolve);
      child.once('exit', resolve);
    });
  }

  /** Resolves when the process is gone. */
  async end(signal = 'SIGKILL') {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.wanted = true;
    if (signal === 'SIGKILL') this.url = undefined; // after SIGTERM it may listen for a while
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }

  /** @returns `undefined` when the app does not answer, or the process was killed meanwhile */
  ask(question) {
    this.#asked += 1;
    return new Promise((resolve) => {
      this.#answers.set(this.#asked, resolve);
      this.#child.send({ ...question, question: this.#asked }, () => undefined);
    });
  }

  #heard(child, message) {
    if (message.store) {
      child.send(this.#sessions.answer(message), () => undefined); // it may be dead by now
    } else if (message.ready) {
      this.url = message.ready;
      child.emit('ready');
    } else if (message.event) {
      this.#tell(message.event);
    } else {
      this.#answers.get(message.question)?.(message.answer);
      this.#answers.delete(message.question);
    }
  }
}
