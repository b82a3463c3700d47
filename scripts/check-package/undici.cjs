// What the plugin takes from the installed release of undici, by its public path, and what that leaves of the host's fetch.
const assert = require('node:assert/strict');
const { createRequire } = require('node:module');

const plugin = createRequire(require.resolve('nestjs-debate-space/package.json'));
const { version } = plugin('undici/package.json');
Reflect.get(globalThis, 'Response'); // as the plugin does
const { Agent, getGlobalDispatcher, Pool } = plugin('undici');
for (const method of ['dispatch', 'destroy']) {
  assert.equal(typeof Pool.prototype[method], 'function', `undici ${version}: Pool has no ${method}()`);
}
assert.ok(!(getGlobalDispatcher() instanceof Agent), `undici ${version} replaces the dispatcher of fetch`);
console.log(`undici ${version} has the Pool that the plugin uses`);
