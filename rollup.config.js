// Puts each library that hosts install into a few files: finding and compiling 145 of them is most of what the plugin adds to
// the start of an app. The comments stay, for whoever debugs in node_modules.
import { readFileSync } from 'node:fs';

const LIBRARIES = ['durable-jobs', 'debate-space'];

const bundleOf = (library) => {
  const folder = `libs/${library}`;
  const { exports } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const entries = Object.values(exports).flatMap((entry) => entry.default ?? []);
  const names = entries.map((entry) => entry.replace(/^\.\/dist\/|\.js$/g, ''));
  if (library === 'debate-space') names.push('schematics/nest-add'); // schematics/collection.json names it
  return {
    input: Object.fromEntries(names.map((name) => [name, `${folder}/build/${name}.js`])),
    external: (id) => /^[@a-z]/.test(id), // packages, and what Node.js has
    output: { dir: `${folder}/dist`, chunkFileNames: 'shared/[name].js' },
    onwarn: (warning, warn) => {
      if (warning.code !== 'THIS_IS_UNDEFINED') warn(warning); // in what TypeScript makes of decorators
    },
  };
};

export default LIBRARIES.map(bundleOf);
