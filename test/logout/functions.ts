import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { FunctionSettings, Invocation } from './function-process.js';

const fileOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

interface Instance {
  readonly child: ChildProcess;
  readonly exit: Promise<unknown[]>;
  requests: number;
}

/** A platform for functions: it freezes a process after each answer, and the last answer is the end of the process. */
export class Functions {
  /** How each process ended. */
  readonly ends: unknown[] = [];
  readonly #settings: FunctionSettings;
  readonly #requestsEach: number;
  readonly #frozen: Instance[] = [];

  /** @param requestsEach how many requests a process answers; 1: each request has a fresh process; `Infinity`: any number */
  constructor(settings: FunctionSettings, requestsEach: number) {
    this.#settings = settings;
    this.#requestsEach = requestsEach;
  }

  async invoke(event: object): Promise<unknown> {
    const instance = this.#frozen.pop() ?? this.#start();
    const { child, exit } = instance;
    instance.requests += 1;
    const isLast = instance.requests === this.#requestsEach;
    const dead = exit.then(() => Promise.reject(new Error('The function has ended without an answer.')));
    const answered = Promise.race([once(child, 'message'), dead]);
    child.kill('SIGCONT');
    child.send({ event, isLast } satisfies Invocation);
    const [answer] = (await answered) as [unknown];
    if (isLast) await exit;
    else if (child.kill('SIGSTOP')) this.#frozen.push(instance);
    return answer;
  }

  /** Kills the processes that are frozen. */
  async stop(): Promise<void> {
    for (const { child, exit } of this.#frozen.splice(0)) {
      child.kill('SIGKILL');
      await exit;
    }
  }

  #start(): Instance {
    const execArgv = ['--no-warnings', '--import', fileOf('../support/process/typescript.mjs')];
    const child = fork(fileOf('function-process.ts'), [JSON.stringify(this.#settings)], { execArgv });
    const exit = once(child, 'exit');
    void exit.then(([, signal]) => this.ends.push(signal));
    return { child, exit, requests: 0 };
  }
}
