import { describe, expect, it } from '@jest/globals';
import type { SimulatorOptions } from '../simulator-options.js';
import { parseCommandLine, UsageError } from './command-line.js';

function options(args: string[], env: NodeJS.ProcessEnv = {}): SimulatorOptions {
  const command = parseCommandLine(args, env);
  if (command.action !== 'start') throw new Error(`The command line asks for ${command.action}.`);
  return command.options;
}

describe('the command line', () => {
  it('has defaults for everything', () => {
    expect(options([])).toEqual({ port: 4010, users: [] });
  });

  it('reads the flags', () => {
    const flags =
      '--port 65535 --host ::1 --host-name a --host-name b --api-key k --secret-key s --application-name n --users 2 --rate-limit 5';
    expect(options(flags.split(' '))).toMatchObject({
      port: 65_535,
      host: '::1',
      hostNames: ['a', 'b'],
      apiKey: 'k',
      secretKey: 's',
      applicationName: 'n',
      users: [{ uid: 'user-1' }, { uid: 'user-2' }],
      rateLimit: { requests: 5, perMs: 60_000 },
    });
    expect(options(['--rate-limit', 'off']).rateLimit).toBe(false);
  });

  it('falls back on the environment, where an empty variable counts as none', () => {
    const env = {
      SIMULATOR_PORT: '4020',
      DEBATE_SPACE_API_KEY: 'k',
      DEBATE_SPACE_SECRET_KEY: '',
      DEBATE_SPACE_APPLICATION_NAME: 'n',
    };
    expect(options([], env)).toEqual({ port: 4020, apiKey: 'k', applicationName: 'n', users: [] });
    expect(options(['--port', '1', '--api-key', 'f'], env)).toMatchObject({ port: 1, apiKey: 'f' });
  });

  it.each([
    ['--port x', '--port must be an integer from 0 to 65535'],
    ['--port 65536', '--port must be'],
    ['--users -1', '--users'],
    ['--users=1.5', '--users must be'],
    ['--rate-limit none', '--rate-limit must be'],
    ['--loud red', '--loud'],
    ['extra', 'extra'],
    ['--host', '--host'],
  ])('refuses %s and says which part is wrong', (flags, message) => {
    const parse = () => parseCommandLine(flags.split(' '), {});
    expect(parse).toThrow(UsageError);
    expect(parse).toThrow(message);
  });

  it('names the variable when the variable is wrong', () => {
    expect(() => parseCommandLine([], { SIMULATOR_PORT: 'x' })).toThrow('SIMULATOR_PORT must be');
  });
});
