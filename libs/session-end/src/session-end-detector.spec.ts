import { beforeEach, describe, expect, it } from '@jest/globals';
import type { DebateSpaceEvent } from './session-end.js';
import { defaultSessionUid } from './session-user.js';
import { EndReporter } from './end-reporter.js';
import { SessionEndDetector } from './session-end-detector.js';

let events: DebateSpaceEvent[];
let detector: SessionEndDetector;
beforeEach(() => {
  events = [];
  const emit = (event: DebateSpaceEvent): unknown => events.push(event);
  const recorder = new EndReporter({} as never, emit);
  detector = new SessionEndDetector(recorder, { uid: defaultSessionUid, graceMs: 10 }, emit);
});

const methods = (): object => ({ get: () => 'got', set: () => undefined, destroy: () => undefined });

it('a store without a prototype is watched', () => {
  const store = Object.assign(Object.create(null) as object, methods());
  expect(detector.watch(store)).toBe(true);
  expect(events).toEqual([{ type: 'session-store-found', store: 'Object' }]);
});

it('a store whose constructor has no name that can be read is watched', () => {
  const store = Object.defineProperty(methods(), 'constructor', {
    get: () => {
      throw new Error('of the host');
    },
  });
  expect(detector.watch(store)).toBe(true);
  expect(events).toEqual([{ type: 'session-store-found', store: 'Object' }]);
});

describe('a store that cannot be watched', () => {
  const stores: { readonly name: string; readonly make: () => object; readonly part: string }[] = [
    {
      name: 'one of its methods cannot be replaced',
      make: () => Object.defineProperty(methods(), 'destroy', { configurable: false }),
      part: 'method destroy',
    },
    { name: 'it is frozen', make: () => Object.freeze(methods()), part: 'method get' },
    {
      name: 'it cannot be extended',
      make: () => Object.preventExtensions(Object.create(methods()) as object),
      part: 'prototype',
    },
  ];
  it.each(stores)('is one warning that names the option and the part when $name', ({ make, part }) => {
    const store = make();
    expect([detector.watch(store), detector.watch(store)]).toEqual([false, false]);
    expect(events.filter(({ type }) => type === 'fault')).toHaveLength(1);
    const warnings = events.filter(({ type }) => type === 'setup-warning');
    expect(warnings).toEqual([
      expect.objectContaining({
        code: 'store-not-watchable',
        message: expect.stringContaining(`its ${part} cannot be replaced`) as unknown,
        hint: expect.stringContaining('session.store') as unknown,
      }),
    ]);
  });

  it('keeps its methods and its prototype', () => {
    const store = Object.defineProperty(methods(), 'destroy', { configurable: false }) as {
      get: () => string;
    };
    const { get } = store;
    detector.watch(store);
    expect(store.get).toBe(get);
    expect(Object.getPrototypeOf(store)).toBe(Object.prototype);
  });
});
