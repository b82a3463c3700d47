import { expect, it } from '@jest/globals';
import { fastify } from 'fastify';
import { Containment } from './containment.js';
import type { DebateSpaceEvent } from './session-end.js';
import { onFastifySession } from './fastify.js';
import type { PlatformListener } from './platform-listener.js';

it('a Fastify host whose requests throw when their session store is read answers as without the plugin', async () => {
  const events: DebateSpaceEvent[] = [];
  const app = fastify();
  const containment = new Containment((event) => events.push(event));
  const listener = { containment, requested: () => undefined, found: () => false, loaded: () => undefined };
  onFastifySession(app, listener as unknown as PlatformListener);
  app.decorateRequest('sessionStore', {
    getter: () => {
      throw new RangeError('of the host');
    },
  });
  app.get('/', () => 'answered');
  const response = await fetch(await app.listen({ port: 0, host: '127.0.0.1' }));
  expect([response.status, await response.text()]).toEqual([200, 'answered']);
  expect(events).toEqual([{ type: 'fault', where: 'fastify onRequest', error: 'RangeError' }]);
  await app.close();
});
