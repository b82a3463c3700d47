import { expect, it } from '@jest/globals';
import { Containment } from './containment.js';
import { onExpressRequest, onExpressSessionStore } from './express.js';
import type { PlatformListener } from './platform-listener.js';

const store = { of: 'the host' };

function app(): {
  readonly handled: () => Record<string, unknown>;
  readonly found: object[];
  readonly detach: () => void;
} {
  const found: object[] = [];
  const express = {
    request: {},
    handle: (...[request]: unknown[]): unknown => Object.setPrototypeOf(request, express.request),
  };
  const listener = {
    containment: new Containment(() => undefined),
    hasStores: true,
    requested: () => undefined,
    found: (each: object) => found.push(each),
  } as unknown as PlatformListener;
  const detachers = [onExpressRequest(express, listener), onExpressSessionStore(express, listener)];
  return {
    handled: () => {
      const request = { headers: {} };
      express.handle(request, {});
      return Object.assign(request, { sessionStore: store });
    },
    found,
    detach: () => {
      for (const each of detachers) each();
    },
  };
}

it('a request keeps the session store that its session middleware gives it, also when the plugin leaves meanwhile', () => {
  const { handled, found, detach } = app();
  const [first, second] = [handled(), handled()];
  first.sessionStore = undefined;
  detach();
  expect(first.sessionStore).toBeUndefined();
  expect(second.sessionStore).toBe(store);
  expect(found).toEqual([store, store]);
  expect(Object.getOwnPropertyDescriptor(handled(), 'sessionStore')?.value).toBe(store);
});

it('a copy of a request has a session store of its own', () => {
  const request = app().handled();
  const copy = Object.create(request) as Record<string, unknown>;
  expect(copy.sessionStore).toBe(store);
  copy.sessionStore = 'another';
  expect([copy.sessionStore, request.sessionStore]).toEqual(['another', store]);
});
