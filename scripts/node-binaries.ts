// Node.js in other versions than the one that runs this, from npm.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { install } from './packed.js';

/** The majors that the packages support. */
export const NODE_MAJORS = ['20', '22', '24', '26'];

/** The major version that runs this. */
export const RUNNING_MAJOR = process.versions.node.replace(/\..*/, '');

const known = new Map([[RUNNING_MAJOR, process.execPath]]);

/** The binary of a major version: the running one's, or one that is installed in the folder. */
export function nodeBinary(major: string, folder: string): string {
  const found = known.get(major);
  if (found !== undefined) return found;
  const place = join(folder, `node-${major}`);
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'node-binary', private: true }));
  const name = `node-${process.platform}-${process.arch}`;
  install(place, [`${name}@${major}`]);
  const binary = join(place, 'node_modules', name, 'bin/node');
  known.set(major, binary);
  return binary;
}
