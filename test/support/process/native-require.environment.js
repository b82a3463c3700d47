import { createRequire } from 'node:module';
import { TestEnvironment } from 'jest-environment-node';

/** Gives tests `nativeRequire`: on Node.js below 24.9 jest's own cannot load CommonJS that requires ES modules. */
export default class NativeRequireEnvironment extends TestEnvironment {
  async setup() {
    await super.setup();
    this.global.nativeRequire = createRequire(import.meta.url);
  }
}
