import { expect, it } from '@jest/globals';
import { fastify } from 'fastify';
import { watchFastify } from './fastify.js';
import { WatchedApp } from './watched-app.js';

it('a Fastify host whose requests throw when their session store is read answers as without the library', async () => {
  const faults: unknown[] = [];
  const app = fastify();
  const onFault = (where: string, error: unknown): unknown => faults.push([where, (error as Error).name]);
  watchFastify(app, new WatchedApp({ onSessionEnd: () => undefined, onFault }));
  app.decorateRequest('sessionStore', {
    getter: () => {
      throw new RangeError('of the host');
    },
  });
  app.get('/', () => 'answered');
  const response = await fetch(await app.listen({ port: 0, host: '127.0.0.1' }));
  expect([response.status, await response.text()]).toEqual([200, 'answered']);
  expect(faults).toEqual([['fastify onRequest', 'RangeError']]);
  await app.close();
});
