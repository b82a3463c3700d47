// The command line as its users get it: installed beside the plugin, and run by npx against a simulated service.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { install, root, run } from '../packed.mjs';

const keys = {
  DEBATE_SPACE_API_KEY: 'api-key-of-a-check',
  DEBATE_SPACE_SECRET_KEY: 'a secret key of a check, long enough for HS256',
  DEBATE_SPACE_APPLICATION_NAME: 'check',
};

/** @returns what npm says of the package, and where its tarball is */
export function packCommandLine(folder) {
  const packed = run('npm', ['pack', '--json', '--pack-destination', folder, '-w', 'debate-space'], root);
  const [pack] = Object.values(JSON.parse(packed));
  return { ...pack, tarball: join(folder, pack.filename) };
}

/** @param tarballs of the plugin, the simulator and the command line */
export async function tryCommandLine(folder, tarballs) {
  const place = join(folder, 'command-line');
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'operators', private: true }));
  install(place, tarballs);
  const version = run('npx', ['--no-install', 'debate-space', '--version'], place).trim();

  const bin = join(place, 'node_modules/.bin/debate-space-simulator');
  const simulator = spawn(bin, ['--port', '0'], { env: { ...process.env, ...keys } });
  try {
    const authUrl = await addressOf(simulator);
    const lines = Object.entries({ ...keys, DEBATE_SPACE_AUTH_URL: authUrl });
    writeFileSync(join(place, '.env'), lines.map(([name, value]) => `${name}="${value}"\n`).join(''));
    const results = JSON.parse(run('npx', ['--no-install', 'debate-space', 'doctor', '--json'], place));
    if (!results.some(({ check, ok }) => check === 'scope-public' && ok)) {
      throw new Error(`doctor did not reach the user list: ${JSON.stringify(results)}`);
    }
  } finally {
    simulator.kill();
    await once(simulator, 'exit');
  }
  console.log(`✓ debate-space ${version} is installed beside the plugin, and its doctor finds no fault`);
}

async function addressOf(simulator) {
  for await (const line of createInterface(simulator.stdout)) {
    const [, address] = /auth_url +(\S+)/.exec(line) ?? [];
    if (address !== undefined) return address;
  }
  throw new Error('the simulator did not start');
}
