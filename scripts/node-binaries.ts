// Node.js in other versions than the one that runs this, from npm.
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { install, root } from './packed.js';

/** The majors that the packages support. */
export const NODE_MAJORS = ['20', '22', '24', '26'];

/** The major version that runs this. */
export const RUNNING_MAJOR = process.versions.node.replace(/\..*/, '');

const cache = join(root, 'node_modules/.cache');

/** The binary of a major version: the running one's, or one that is downloaded once for all scripts. */
export async function nodeBinary(major: string): Promise<string> {
  if (major === RUNNING_MAJOR) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const place = join(cache, `${name}-${major}`);
  if (!existsSync(place)) {
    mkdirSync(cache, { recursive: true });
    const draft = mkdtempSync(`${place}-`);
    writeFileSync(join(draft, 'package.json'), JSON.stringify({ name: 'node-binary', private: true }));
    await install(draft, [`${name}@${major}`]);
    // Under its name only when it is complete: another script may have been faster.
    if (existsSync(place)) rmSync(draft, { recursive: true });
    else renameSync(draft, place);
  }
  return join(place, 'node_modules', name, 'bin/node');
}
