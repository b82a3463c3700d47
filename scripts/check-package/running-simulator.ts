// The simulator as the shell starts it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** Starts the simulator at `bin`, calls `use` with its address, and stops it. */
export async function withSimulator(
  bin: string,
  env: NodeJS.ProcessEnv,
  use: (authUrl: string) => Promise<void>,
): Promise<void> {
  const simulator = spawn(bin, ['--port', '0'], { env: { ...process.env, ...env } });
  await once(simulator, 'spawn'); // rejects when there is no such program
  try {
    await use(await addressOf(simulator.stdout));
  } finally {
    simulator.kill();
    if (simulator.exitCode === null && simulator.signalCode === null) await once(simulator, 'exit');
  }
}

async function addressOf(printed: Readable): Promise<string> {
  for await (const line of createInterface(printed)) {
    const [, address] = /DEBATE_SPACE_AUTH_URL=(\S+)/.exec(line) ?? [];
    if (address !== undefined) return address;
  }
  throw new Error('the simulator did not start');
}
