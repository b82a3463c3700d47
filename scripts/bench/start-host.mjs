// One host process for the benchmark of the start: imports and initializes Nest, with or without the plugin.
import { performance } from 'node:perf_hooks';

const [kind] = process.argv.slice(2);
const begun = performance.now();
await import('reflect-metadata');
const { Module } = await import('@nestjs/common');
const { NestFactory } = await import('@nestjs/core');
const plugin = async () => {
  const { DebateSpaceModule } = await import('nestjs-debate-space');
  return DebateSpaceModule.forRoot({
    apiKey: 'an-api-key',
    secretKey: 'a secret key that is long enough for HS256',
    applicationName: 'demo',
    authUrl: 'http://127.0.0.1:9',
  });
};
class HostModule {}
Module({ imports: kind === 'with' ? [await plugin()] : [] })(HostModule);
const app = await NestFactory.create(HostModule, { logger: false });
await app.init();
process.send({ ms: performance.now() - begun, cpuMs: process.cpuUsage().user / 1000 });
process.once('disconnect', () => process.exit());
