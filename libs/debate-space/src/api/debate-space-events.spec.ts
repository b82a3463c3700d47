/** @jest-environment ./test/support/process/native-require.environment.js */
import { describe, expect, it } from '@jest/globals';
import * as ownRxjs from 'rxjs';
import { ContainedObservable } from './debate-space-events.js';
import { Containment, faultsTo } from '../async/containment.js';
import type { DebateSpaceEvent } from '../events.js';

declare const nativeRequire: NodeJS.Require;
const { Subject } = ownRxjs;
const copies = [
  { name: 'the plugin’s RxJS', rxjs: ownRxjs },
  { name: 'a second copy of RxJS', rxjs: nativeRequire('rxjs') as typeof ownRxjs },
];

function observable() {
  const faults: DebateSpaceEvent[] = [];
  const source = new Subject<number>();
  const events$ = new ContainedObservable(new Containment(faultsTo((event) => faults.push(event))), source);
  return { faults, source, events$ };
}

describe.each(copies)('a host with $name', ({ rxjs }) => {
  it('leaves no subscription behind when firstValueFrom has its value', async () => {
    const { source, events$ } = observable();
    const first = rxjs.firstValueFrom(events$);
    source.next(1);
    expect(await first).toBe(1);
    expect(source.observed).toBe(false);
  });

  it('hears through operators that the events have ended', async () => {
    const { source, events$ } = observable();
    const all = rxjs.lastValueFrom(events$.pipe(rxjs.toArray()));
    source.next(1);
    source.complete();
    expect(await all).toEqual([1]);
  });
});

it('this test has two copies of RxJS', () => {
  expect(copies[1]?.rxjs.Subscriber).not.toBe(ownRxjs.Subscriber);
});

it('a direct subscriber that throws is a fault, and the others get the event', () => {
  const { faults, source, events$ } = observable();
  const values: number[] = [];
  events$.subscribe(() => {
    throw new TypeError('a fault that was injected');
  });
  const subscription = events$.subscribe({ next: (value) => values.push(value) });
  source.next(1);
  subscription.unsubscribe();
  source.next(2);
  expect(values).toEqual([1]);
  expect(faults).toContainEqual({ type: 'fault', where: 'a subscriber of events$', error: 'TypeError' });
});

it('an async subscriber that fails at every event hears of its failure once, and the event loop goes on', async () => {
  const source = new Subject<DebateSpaceEvent>();
  const events$ = new ContainedObservable(new Containment(faultsTo(source.next.bind(source))), source);
  const heard: string[] = [];
  const failing = ({ type }: DebateSpaceEvent): unknown => {
    heard.push(type);
    if (heard.length > 10) source.complete(); // instead of a test that never ends
    return Promise.reject(new TypeError('a fault that was injected'));
  };
  events$.subscribe(failing);
  source.next({ type: 'service-up' });
  await new Promise((resolve) => setImmediate(resolve));
  expect(heard).toEqual(['service-up', 'fault']);
});
