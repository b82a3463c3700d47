import { describe, expect, it } from '@jest/globals';
import express from 'express';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAnswer } from './answer-gate.js';
import { watchExpress, type ExpressApp } from './express.js';
import { WatchedApp } from './watched-app.js';

const newStore = (): object => Object.create({ get: nothing, set: nothing, destroy: nothing }) as object;
const nothing = (): void => undefined;
const isWatched = (store: object): boolean => Object.hasOwn(store, 'destroy');

interface Host {
  /** A request after the session middleware has set its store. */
  readonly handled: (store: object) => Record<string, unknown>;
  readonly detach: () => void;
}

/** @param isLate whether something asynchronous is in front of the session middleware */
function host(isLate = false): Host {
  let set: () => void = () => undefined;
  const express = {
    request: {},
    response: Object.create({ end: () => undefined, write: () => undefined }) as object,
    handle: (...[request]: unknown[]): unknown => {
      Object.setPrototypeOf(request, express.request);
      if (!isLate) set();
      return undefined;
    },
  };
  const app = new WatchedApp({ onSessionEnd: () => undefined });
  const detach = watchExpress(express, app);
  return {
    handled: (store) => {
      const request = { headers: {}, method: 'GET' };
      set = () => void Object.assign(request, { sessionStore: store });
      express.handle(request, {});
      if (isLate) set();
      return request;
    },
    detach,
  };
}

describe('a request', () => {
  it('keeps the session store that its session middleware gives it, also when the library leaves meanwhile', () => {
    const { handled, detach } = host();
    const store = newStore();
    const [first, second] = [handled(store), handled(store)];
    first.sessionStore = undefined;
    detach();
    expect(first.sessionStore).toBeUndefined();
    expect(second.sessionStore).toBe(store);
    expect(isWatched(store)).toBe(true);
    expect(Object.getOwnPropertyDescriptor(handled(store), 'sessionStore')?.value).toBe(store);
  });

  it('can be copied, and the copy has a session store of its own', () => {
    const store = newStore();
    const request = host().handled(store);
    const copy = Object.create(request) as Record<string, unknown>;
    expect(copy.sessionStore).toBe(store);
    copy.sessionStore = 'another';
    expect([copy.sessionStore, request.sessionStore]).toEqual(['another', store]);
  });
});

describe('the session store', () => {
  it('of the first request is found at the moment it is set', () => {
    const { handled } = host(true);
    const store = newStore();
    handled(store);
    expect(isWatched(store)).toBe(true);
  });

  it('of another session middleware is found when that has run', () => {
    const { handled } = host();
    const [one, other] = [newStore(), newStore()];
    handled(one);
    handled(other);
    expect([one, other].map(isWatched)).toEqual([true, true]);
  });
});

it('the end of an answer that the host has wrapped before Express has a gate in front of the wrapper', async () => {
  const app = express();
  const watched = new WatchedApp({ onSessionEnd: () => undefined });
  watchExpress(app as unknown as ExpressApp, watched);
  let answered = '';
  app.use((_, response) => {
    const answering = async (): Promise<void> => {
      await new Promise(setImmediate);
      answered += 'recorded ';
    };
    beforeAnswer(response, { containment: watched.containment, timeoutMs: 10_000, answering });
    response.end('bye');
  });
  const server = createServer((request, response) => {
    const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse;
    response.end = (...args: unknown[]) => {
      answered += 'ended';
      return end(...args);
    };
    app(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  expect(await (await fetch(`http://127.0.0.1:${port}`)).text()).toBe('bye');
  server.closeAllConnections();
  server.close();
  expect(answered).toBe('recorded ended');
});

it('an Express host whose requests throw when their session store is read answers as without the library', () => {
  const express: ExpressApp = {
    request: {},
    response: Object.create({ end: () => undefined, write: () => undefined }) as object,
    handle: (request: IncomingMessage): unknown =>
      Object.defineProperty(request, 'sessionStore', {
        get: () => {
          throw new RangeError('of the host');
        },
      }),
  };
  watchExpress(express, new WatchedApp({ onSessionEnd: () => undefined }));
  const request = { headers: {}, method: 'GET' } as IncomingMessage;
  expect(() => express.handle(request, {} as ServerResponse)).not.toThrow();
});
