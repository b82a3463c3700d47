import { EventEmitter } from 'node:events';

/** Those that session stores have. */
export const METHODS = [
  'get',
  'set',
  'touch',
  'destroy',
  'clear',
  'all',
  'length',
  'ids',
  'createSession',
  'load',
  'regenerate',
];

/** What a store's own method got. */
export interface RecordedCall {
  readonly name: string;
  readonly this: string;
  readonly args: readonly string[];
}

type Method = (...args: unknown[]) => unknown;

/**
 * Has a store's own methods record how they are called – in a layer between the store and its class, so that the
 * instance looks as before, or in place of those that stand on the instance.
 */
export function recordCalls(store: object): RecordedCall[] {
  const calls: RecordedCall[] = [];
  const layer = Object.create(Object.getPrototypeOf(store) as object) as object;
  for (const name of METHODS) {
    const method: unknown = Reflect.get(store, name);
    if (typeof method !== 'function') continue;
    const recording = function (this: unknown, ...args: unknown[]): unknown {
      calls.push({ name, this: describeThis(this, store), args: args.map((arg) => typeof arg) });
      return Reflect.apply(method as Method, this, args);
    };
    Object.defineProperties(recording, {
      name: { value: method.name },
      length: { value: method.length },
    });
    const target = Object.hasOwn(store, name) ? store : layer;
    Object.defineProperty(target, name, {
      value: recording,
      writable: true,
      configurable: true,
      enumerable: false,
    });
  }
  Object.setPrototypeOf(store, layer);
  return calls;
}

/** The calls of one method: to find a session's user, the plugin reads the store as well. */
export const callsOf = (name: string, calls: readonly RecordedCall[]): readonly RecordedCall[] =>
  calls.filter((call) => call.name === name);

function describeThis(self: unknown, store: object): string {
  if (self === store) return 'the store';
  if (typeof self !== 'object' || self === null) return typeof self;
  if (Object.prototype.isPrototypeOf.call(store, self)) return 'a store made of it';
  return self instanceof EventEmitter ? 'another store' : 'another object';
}
