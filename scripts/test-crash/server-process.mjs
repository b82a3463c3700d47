import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { atExit } from './leftovers.mjs';
import { Skipped } from './skipped.mjs';

/** A server of a scenario's own, which can be killed and started again where it was. */
export class ServerProcess {
  #child;

  /**
   * Resolves when the server is ready.
   * @param output `stdout` or `stderr`: where it prints a line with the words `ready`
   * @throws {Skipped} when this machine does not have it
   */
  async launch(command, args, { output, ready, ...options }) {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    const wipe = atExit(() => child.kill('SIGKILL'));
    child.once('exit', wipe);
    this.#child = child;
    const printed = [];
    const isReady = async () => {
      for await (const line of createInterface(child[output])) {
        printed.push(line);
        if (line.includes(ready)) return;
      }
    };
    const failed = ([code]) => {
      throw new Error(`${command} did not start (exit code ${code})\n${printed.join('\n')}`);
    };
    await Promise.race([isReady(), once(child, 'exit').then(failed)]).catch((error) => {
      throw error.code === 'ENOENT' ? missing(command) : error;
    });
    for (const stream of [child.stdout, child.stderr]) stream.resume();
  }

  async kill() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }
}

export function missing(command) {
  return new Skipped(`this machine has no ${command}`, { canBeInstalled: true });
}

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
