import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { codeOf } from '../caught.js';
import { atExit } from './leftovers.js';
import { Skipped } from './skipped.js';

interface LaunchOptions extends Pick<SpawnOptions, 'cwd' | 'uid' | 'gid'> {
  /** Where it prints a line with the words `ready`. */
  readonly output: 'stdout' | 'stderr';
  readonly ready: string;
}

/** A server of a scenario's own, which can be killed and started again where it was. */
export abstract class ServerProcess {
  #child: ChildProcess | undefined;

  abstract get url(): string;
  abstract get version(): string;
  abstract start(): Promise<void>;

  /**
   * Resolves when the server is ready.
   * @throws {Skipped} when this machine does not have it
   */
  protected async launch(
    command: string,
    args: readonly string[],
    { output, ready, ...options }: LaunchOptions,
  ): Promise<void> {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    const wipe = atExit(() => child.kill('SIGKILL'));
    child.once('exit', wipe);
    this.#child = child;
    const printed: string[] = [];
    const isReady = async (): Promise<void> => {
      for await (const line of createInterface(child[output])) {
        printed.push(line);
        if (line.includes(ready)) return;
      }
    };
    const failed = ([code]: unknown[]): never => {
      throw new Error(`${command} did not start (exit code ${String(code)})\n${printed.join('\n')}`);
    };
    await Promise.race([isReady(), once(child, 'exit').then(failed)]).catch((error: unknown) => {
      throw codeOf(error) === 'ENOENT' ? missing(command) : error;
    });
    for (const stream of [child.stdout, child.stderr]) stream.resume();
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }
}

export function missing(command: string): Skipped {
  return new Skipped(`this machine has no ${command}`, { canBeInstalled: true });
}
