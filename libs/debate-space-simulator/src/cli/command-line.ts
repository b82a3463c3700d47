import { parseArgs } from 'node:util';
import { DEMO_MODES, isDemoMode, type DemoMode } from '../demo/demo-mode.js';
import type { NewUser } from '../state/users.js';
import type { SimulatorOptions } from '../simulator-options.js';

/** A command line that cannot be understood. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export type Command =
  | { action: 'help' }
  | { action: 'version' }
  | { action: 'mode'; mode: DemoMode; host: string; port: number }
  | { action: 'start'; options: SimulatorOptions };

export const USAGE = `Usage: debate-space-simulator [flags]
       debate-space-simulator MODE [--port N] [--host ADDRESS]   switches the simulator that runs there

Modes:
${Object.entries(DEMO_MODES)
  .map(([mode, words]) => `  ${mode.padEnd(23)}  ${words}`)
  .join('\n')}

Flags:
  --port N                 port to listen on, 0 for any (default 4010; env SIMULATOR_PORT)
  --host ADDRESS           address to listen on (default 127.0.0.1)
  --host-name NAME         a name under which clients reach it, such as that of a container; may be repeated
  --api-key KEY            API key (env DEBATE_SPACE_API_KEY)
  --secret-key KEY         secret key (env DEBATE_SPACE_SECRET_KEY; a flag shows in process lists)
  --application-name NAME  application name (env DEBATE_SPACE_APPLICATION_NAME)
  --users N                register N users, user-1 to user-N (default 0)
  --rate-limit N|off       requests a minute per API key (default 100)
  -h, --help
  -v, --version
`;

/**
 * Reads the flags, then the environment. An empty variable counts as none.
 * @throws UsageError saying which flag or variable is wrong
 */
export function parseCommandLine(args: string[], env: NodeJS.ProcessEnv): Command {
  const { flags, mode } = parsedArgs(args);
  if (flags.help) return { action: 'help' };
  if (flags.version) return { action: 'version' };
  const [portName, port] =
    flags.port === undefined ? ['SIMULATOR_PORT', env.SIMULATOR_PORT] : ['--port', flags.port];
  const number = integer(portName, present(port) ?? '4010', 65_535);
  if (mode !== undefined) return { action: 'mode', mode, host: flags.host ?? '127.0.0.1', port: number };
  const options: SimulatorOptions = {
    port: number,
    host: flags.host,
    hostNames: flags['host-name'],
    apiKey: flags['api-key'] ?? present(env.DEBATE_SPACE_API_KEY),
    secretKey: flags['secret-key'] ?? present(env.DEBATE_SPACE_SECRET_KEY),
    applicationName: flags['application-name'] ?? present(env.DEBATE_SPACE_APPLICATION_NAME),
    users: seedUsers(integer('--users', flags.users ?? '0', 100_000)),
    rateLimit: rateLimit(flags['rate-limit']),
  };
  return { action: 'start', options };
}

function parsedArgs(args: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        port: { type: 'string' },
        host: { type: 'string' },
        'host-name': { type: 'string', multiple: true },
        'api-key': { type: 'string' },
        'secret-key': { type: 'string' },
        'application-name': { type: 'string' },
        users: { type: 'string' },
        'rate-limit': { type: 'string' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'v' },
      },
    });
    const [mode, ...others] = positionals;
    if (others.length > 0 || (mode !== undefined && !isDemoMode(mode)))
      throw new UsageError(`${positionals.join(' ')} is not a mode.`);
    return { flags: values, mode };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function present(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

function integer(name: string, value: string, max: number): number {
  if (/^\d{1,9}$/.test(value) && Number(value) <= max) return Number(value);
  throw new UsageError(`${name} must be an integer from 0 to ${max}, not ${JSON.stringify(value)}.`);
}

function rateLimit(value: string | undefined): SimulatorOptions['rateLimit'] {
  if (value === undefined) return undefined;
  if (value === 'off') return false;
  return { requests: integer('--rate-limit', value, 1_000_000), perMs: 60_000 };
}

function seedUsers(count: number): NewUser[] {
  return Array.from({ length: count }, (_, index) => ({
    uid: `user-${index + 1}`,
    first_name: 'User',
    last_name: String(index + 1),
    email: `user-${index + 1}@example.org`,
    contributions: index % 5,
  }));
}
