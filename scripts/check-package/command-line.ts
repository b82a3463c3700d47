// The command line as its users get it: installed beside the plugin, and run against a simulated service.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runAsync } from '../packed.js';
import { npm } from './package-managers.js';
import { withSimulator } from './running-simulator.js';

const keys = {
  DEBATE_SPACE_API_KEY: 'api-key-of-a-check',
  DEBATE_SPACE_SECRET_KEY: 'a secret key of a check, long enough for HS256',
  DEBATE_SPACE_APPLICATION_NAME: 'check',
};

/** In a folder without an app. @param tarballs of the plugin and what it depends on, the simulator and the command line */
export async function tryCommandLine(folder: string, tarballs: readonly string[]): Promise<void> {
  const place = join(folder, 'command-line');
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'operators', private: true }));
  await npm.add(place, tarballs);
  const version = (await runAsync('npx', ['--no-install', 'debate-space', '--version'], place)).trim();
  await withSimulator(join(place, 'node_modules/.bin/debate-space-simulator'), keys, async (authUrl) => {
    const lines = Object.entries({ ...keys, DEBATE_SPACE_AUTH_URL: authUrl });
    writeFileSync(join(place, '.env'), lines.map(([name, value]) => `${name}="${value}"\n`).join(''));
    await examine(place);
  });
  console.log(`✓ debate-space ${version} is installed beside the plugin, and its doctor finds no fault`);
}

/** Runs the doctor of the command line that is installed in `place`. */
export async function examine(place: string, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const bin = join(place, 'node_modules/.bin/debate-space');
  const printed = await runAsync(bin, ['doctor', '--json'], place, { ...process.env, ...env });
  const results = JSON.parse(printed) as readonly { readonly check: string; readonly ok: boolean }[];
  if (!results.some(({ check, ok }) => check === 'users' && ok)) {
    throw new Error(`doctor did not reach the user list: ${JSON.stringify(results)}`);
  }
}
