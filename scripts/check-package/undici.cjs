// undici has no public path to its Pool alone: this is what the plugin takes from the installed release.
const assert = require('node:assert/strict');
const { createRequire } = require('node:module');
const { join } = require('node:path');

const plugin = createRequire(require.resolve('nestjs-debate-space/package.json'));
const { version } = plugin('undici/package.json');
const globalDispatcher = Symbol.for('undici.globalDispatcher.1');
const before = globalThis[globalDispatcher];
const Pool = plugin(join('undici', 'lib', 'dispatcher', 'pool.js'));
assert.equal(typeof Pool, 'function', `undici ${version}: lib/dispatcher/pool.js exports no class`);
for (const method of ['dispatch', 'destroy']) {
  assert.equal(typeof Pool.prototype[method], 'function', `undici ${version}: Pool has no ${method}()`);
}
assert.equal(
  globalThis[globalDispatcher],
  before,
  `undici ${version}: Pool replaces the dispatcher of fetch`,
);
console.log(`undici ${version} has the Pool that the plugin uses`);
