import { randomBytes } from 'node:crypto';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { DEMO_USERS } from './login/demo-users.js';

/**
 * Starts a debate space in this process, with the demo users in it, and puts its address and keys where the app looks
 * for them. Keys that the environment has are kept; otherwise the secret is made up for this run.
 * @param members how many more users to register, for lists that are longer than a page
 */
export async function startSimulatedService(port: number, members = 0): Promise<DebateSpaceSimulator> {
  const { env } = process;
  env.DEBATE_SPACE_API_KEY ??= 'sample-app-on-this-machine';
  env.DEBATE_SPACE_SECRET_KEY ??= randomBytes(32).toString('hex');
  env.DEBATE_SPACE_APPLICATION_NAME ??= 'sample-app';
  const simulator = await DebateSpaceSimulator.start({
    port,
    apiKey: env.DEBATE_SPACE_API_KEY,
    secretKey: env.DEBATE_SPACE_SECRET_KEY,
    applicationName: env.DEBATE_SPACE_APPLICATION_NAME,
    users: [...DEMO_USERS, ...numbered(members)].map(({ uid, name }, index) => ({
      uid,
      first_name: name,
      email: `${uid}@example.org`,
      contributions: index + 2,
    })),
  });
  env.DEBATE_SPACE_AUTH_URL = simulator.url;
  env.SIMULATOR_URL = simulator.url;
  return simulator;
}

/** As they are called in public/demo-data/leavers.csv. */
function numbered(members: number): { uid: string; name: string }[] {
  return Array.from({ length: members }, (_, index) => {
    const number = String(index + 1).padStart(3, '0');
    return { uid: `member-${number}`, name: `Member ${number}` };
  });
}
