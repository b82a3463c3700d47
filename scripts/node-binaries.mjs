// Node.js in other versions than the one that runs this, from npm.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { install } from './packed.mjs';

/** The majors that the packages support. */
export const NODE_MAJORS = ['20', '22', '24', '26'];

const known = new Map([[process.versions.node.split('.', 1)[0], process.execPath]]);

/** The binary of a major version: the running one's, or one that is installed in the folder. */
export function nodeBinary(major, folder) {
  if (!known.has(major)) {
    const place = join(folder, `node-${major}`);
    mkdirSync(place);
    writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'node-binary', private: true }));
    const name = `node-${process.platform}-${process.arch}`;
    install(place, [`${name}@${major}`]);
    known.set(major, join(place, 'node_modules', name, 'bin/node'));
  }
  return known.get(major);
}
