import { EventEmitter, once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { simulators } from '../testing/service-client.js';
import { runCli } from './run-cli.js';

const start = simulators();

/** Runs the command line; `printed` resolves with the first output, `stop` is what Ctrl+C does. */
function run(args: string[], env: NodeJS.ProcessEnv = {}) {
  const written = { out: '', err: '' };
  const events = new EventEmitter();
  const printed = once(events, 'printed');
  const exitCode = runCli(args, {
    env,
    out: (text) => {
      written.out += text;
      events.emit('printed');
    },
    err: (text) => {
      written.err += text;
    },
    stopRequested: once(events, 'stop').then(() => undefined),
  });
  return { written, exitCode, printed, stop: () => events.emit('stop') };
}

describe('the command', () => {
  it('serves until it is stopped, and prints no secret that was given', async () => {
    const env = { DEBATE_SPACE_API_KEY: 'given-key', DEBATE_SPACE_SECRET_KEY: 'given-secret' };
    const { written, exitCode, printed, stop } = run(['--port', '0', '--users', '3'], env);
    await printed;
    const url = /AUTH_URL=(\S+)/.exec(written.out)?.[1] ?? '';
    expect(written.out).toContain(`base_url    ${url}/api/v1`);
    expect(written.out).not.toMatch(/given-key|given-secret/);
    const state = await fetch(`${url}/simulator/state`);
    expect(await state.json()).toMatchObject({ users: [{ uid: 'user-1' }, {}, {}] });
    stop();
    expect(await exitCode).toBe(0);
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });

  it('prints the lines for the .env of an app, with the demo keys when none were given', async () => {
    const { written, exitCode, printed, stop } = run(['--port', '0']);
    await printed;
    expect(written.out).toMatch(/^ {2}DEBATE_SPACE_API_KEY=demo-api-key$/m);
    const lines = written.out.split('\n').filter((line) => line.startsWith('  DEBATE_SPACE_'));
    expect(lines).toHaveLength(4);
    stop();
    expect(await exitCode).toBe(0);
  });

  it('names a port that is taken and the hint', async () => {
    const sim = await start();
    const { port } = new URL(sim.url);
    const { written, exitCode } = run(['--port', port]);
    expect(await exitCode).toBe(1);
    expect(written.err).toContain(`Port ${port} is taken.`);
    expect(written.err).toContain('--port N');
  });

  it.each([
    ['--nonsense', 2, 'err', /^Usage: debate-space-simulator/m],
    ['--help', 0, 'out', /SIMULATOR_PORT/],
    ['--version', 0, 'out', /^\d+\.\d+\.\d+\n$/],
  ] as const)('%s ends with %d', async (flag, code, stream, text) => {
    const { written, exitCode } = run([flag]);
    expect([await exitCode, written[stream]]).toEqual([code, expect.stringMatching(text)]);
  });

  it('switches the mode of the simulator that runs', async () => {
    const sim = await start();
    const { port } = new URL(sim.url);
    const { written, exitCode } = run(['down', '--port', port]);
    expect([await exitCode, written.out]).toEqual([0, expect.stringContaining('Down: ')]);
    expect(await (await fetch(`${sim.url}/simulator/state`)).json()).toMatchObject({ mode: 'down' });
    await sim.stop();
    const gone = run(['normal', '--port', port]);
    expect(await gone.exitCode).toBe(1);
    expect(gone.written.err).toContain(`No simulator answers at ${sim.url}. Start it`);
  });
});
