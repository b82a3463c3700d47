import { readFile } from 'node:fs/promises';
import { DebateSpaceSimulator } from '../debate-space-simulator.js';
import { DEMO_MODES } from '../demo/demo-mode.js';
import { DEMO_CREDENTIALS, type SimulatorOptions } from '../simulator-options.js';
import { parseCommandLine, USAGE, UsageError, type Command } from './command-line.js';

/** What the command line needs of its surroundings. */
export interface CliSurroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Resolves when the simulator is to stop. */
  readonly stopRequested: Promise<void>;
}

/** Runs the command line. Returns the exit code: 0, 1 when it cannot start or none runs, 2 for a wrong command line. */
export async function runCli(args: string[], surroundings: CliSurroundings): Promise<number> {
  let command: Command;
  try {
    command = parseCommandLine(args, surroundings.env);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    surroundings.err(`${error.message}\n\n${USAGE}`);
    return 2;
  }
  if (command.action === 'help') surroundings.out(USAGE);
  else if (command.action === 'version') surroundings.out(`${await version()}\n`);
  else if (command.action === 'mode') return switchMode(command, surroundings);
  else return serve(command.options, surroundings);
  return 0;
}

async function switchMode(
  { mode, host, port }: Extract<Command, { action: 'mode' }>,
  { out, err }: CliSurroundings,
): Promise<number> {
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  try {
    const response = await fetch(`${url}/simulator/mode`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ mode }),
    });
    if (!response.ok) throw new Error(String(response.status));
    out(`${url}: ${DEMO_MODES[mode]}.\n`);
    return 0;
  } catch {
    err(`No simulator answers at ${url}. Start it, or name its port: --port N.\n`);
    return 1;
  }
}

async function serve(
  options: SimulatorOptions,
  { out, err, stopRequested }: CliSurroundings,
): Promise<number> {
  let simulator: DebateSpaceSimulator;
  try {
    simulator = await DebateSpaceSimulator.start({ ...options, keepProcessAlive: true });
  } catch (error) {
    err(`${startFailure(error, options)}\n`);
    return 1;
  }
  out(banner(simulator, options));
  await stopRequested;
  await simulator.stop();
  return 0;
}

function startFailure(error: unknown, { port, host }: SimulatorOptions): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') {
    return `Port ${port ?? 0} is taken. Stop what listens there, or choose another: --port N (0 for any free one).`;
  }
  if (code === 'EACCES') return `Port ${port ?? 0} needs privileges. Choose one above 1023: --port N.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return `${host ?? ''} is not an address of this machine. Choose another: --host ADDRESS.`;
  }
  return `The simulator did not start: ${error instanceof Error ? error.message : String(error)}`;
}

/** With the demo credentials, which are published. Given credentials are not printed. */
function banner(simulator: DebateSpaceSimulator, options: SimulatorOptions): string {
  const line = (name: string, given: string | undefined, demo: string): string =>
    given === undefined ? `${name}=${demo}` : `# ${name}, as given`;
  return `Debate space simulator: ${simulator.url}/
  base_url    ${simulator.baseUrl}
For the .env of an app that uses it:
  ${line('DEBATE_SPACE_API_KEY', options.apiKey, DEMO_CREDENTIALS.apiKey)}
  ${line('DEBATE_SPACE_SECRET_KEY', options.secretKey, DEMO_CREDENTIALS.secretKey)}
  DEBATE_SPACE_APPLICATION_NAME=${simulator.applicationName}
  DEBATE_SPACE_AUTH_URL=${simulator.url}
Simulated failures: on the page, or in another shell: debate-space-simulator down --port ${new URL(simulator.url).port}
Stop with Ctrl+C.
`;
}

async function version(): Promise<string> {
  const text = await readFile(new URL('../../package.json', import.meta.url), 'utf8');
  const { version } = JSON.parse(text) as { version: string };
  return version;
}
