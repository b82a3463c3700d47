// Packs the libraries and the command line, and uses the tarballs as strangers would: in apps of `nest new` 10, 11 and 12, in
// strict hosts, and alone. Arguments: what the names of the parts contain; each app by each package manager is a part of its own.
import { adopt, managers, scaffolds } from './check-package/adoption.js';
import { tryCommandLine, tryHost } from './check-package/hosts.js';
import { checkContents } from './check-package/package-contents.js';
import { inTurns, withPacked } from './driver.js';
import { packages } from './packed.js';

/** The versions of Node.js that the built apps of each NestJS run on. */
const NODES = { 10: ['20'], 11: ['22'], 12: ['24', '26'] } as const;
/** pnpm's folders and a tsconfig without esModuleInterop are what jest in CommonJS mode stumbles over. */
const USUAL = ['NestJS 10 with pnpm', 'NestJS 11 with npm', 'NestJS 12 with npm'];
const wanted = process.argv.slice(2).join(' ');

await withPacked(
  async (folder, packed) => {
    for (const each of packed) await checkContents(each);
    const tarballs = packed.slice(0, packages.length).map(({ tarball }) => tarball);
    const parts: Record<string, () => Promise<void>> = {};
    const scaffolded = scaffolds(folder);
    for (const [nest, nodes] of Object.entries(NODES)) {
      for (const manager of managers) {
        const name = `NestJS ${nest} with ${manager}`;
        if (wanted === '' && !USUAL.includes(name)) continue;
        parts[`an app of nest new: ${name}`] = () =>
          adopt(folder, { scaffolded, nest, nodes, manager, packed });
      }
      parts[`a host with NestJS ${nest}`] = () => tryHost(folder, nest, tarballs);
    }
    parts['the command line'] = () => tryCommandLine(folder, packed);
    const chosen = Object.entries(parts).filter(([name]) => name.includes(wanted));
    if (chosen.length === 0) throw new Error(`No part's name contains ${wanted}.`);
    const timed = chosen.map(([name, part]) => async () => {
      const begun = performance.now();
      await part();
      console.log(`✓ ${name} (${((performance.now() - begun) / 1000).toFixed(0)} s)`);
    });
    await inTurns(timed);
  },
  [...packages, 'debate-space'],
);
