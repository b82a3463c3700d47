// Puts the plugin, which hosts install, into a few files: finding and compiling some 100 of them is most of what it adds to
// the start of an app. The comments stay, for whoever debugs in node_modules.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = 'libs/debate-space';
const { exports } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
const entries = Object.values(exports).flatMap((entry) => entry.default ?? []);
const names = entries.map((entry) => entry.replace(/^\.\/dist\/|\.js$/g, ''));

export default {
  input: {
    ...Object.fromEntries(names.map((name) => [name, `${folder}/build/${name}.js`])),
    'schematics/nest-add': `${folder}/build/schematics/nest-add.js`, // schematics/collection.json names it
    'sqlite-worker': `${folder}/build/storage/sqlite-worker.js`, // sqlite.js starts it as a thread
  },
  external: (id) => /^[@a-z]/.test(id) && id !== 'valibot', // packages, and what Node.js has
  // A tenth of valibot is used. To load all of it would be half of what the plugin adds to the start of an app.
  plugins: [
    {
      name: 'take in valibot',
      resolveId: (id) => (id === 'valibot' ? fileURLToPath(import.meta.resolve('valibot')) : null),
    },
  ],
  output: { dir: `${folder}/dist`, chunkFileNames: 'shared/[name].js' },
  onwarn: (warning, warn) => {
    if (warning.code !== 'THIS_IS_UNDEFINED') warn(warning); // in what TypeScript makes of decorators
  },
};
