import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { memberUid } from './admin/erasure-form.js';

const DEMO = new URL('../.env.demo', import.meta.url);
const DEMO_USERS = { ada: 'Ada', ben: 'Ben', cleo: 'Cleo', admin: 'Administrator' };

/**
 * Starts a debate space in this process, and sets the environment of the app to it: the settings of `.env.demo` win, so that
 * the demo never talks to a real service.
 * @param members how many users the debate space has besides the demo users
 */
export async function startSimulator(port: number, members = 0): Promise<DebateSpaceSimulator> {
  const demo = parseEnv(readFileSync(DEMO, 'utf8'));
  const { DEBATE_SPACE_API_KEY: apiKey, DEBATE_SPACE_SECRET_KEY: secretKey } = demo;
  const users = [
    ...Object.entries(DEMO_USERS),
    ...Array.from({ length: members }, (_, n) => [memberUid(n + 1), `Member ${n + 1}`] as const),
  ];
  const simulator = await DebateSpaceSimulator.start({
    port,
    apiKey,
    secretKey,
    applicationName: demo.DEBATE_SPACE_APPLICATION_NAME,
    users: users.map(([uid, name], n) => ({
      uid,
      first_name: name,
      email: `${uid}@example.org`,
      contributions: n + 2,
    })),
  });
  Object.assign(process.env, demo, {
    SESSION_SECRET: randomBytes(32).toString('hex'), // sessions end with the process anyway
    DEBATE_SPACE_AUTH_URL: simulator.url,
    SIMULATOR_URL: simulator.url,
  });
  return simulator;
}
