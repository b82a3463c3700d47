import type { Observable, Subject } from 'rxjs';
import { ContainedObservable } from './contained-observable.js';
import { Containment } from '../async/containment.js';
import type { DebateSpaceEvent } from '../events.js';

/** What happens in this application, as it happens. Injectable. */
export class DebateSpaceEvents {
  /**
   * Hot: a subscriber sees what comes after it has subscribed. Completes when the app has shut down. A direct subscriber
   * that throws is an event `fault`, and does not end the process. Behind `pipe`, RxJS reports what a subscriber throws as
   * an uncaught exception, and what an operator throws, too, unless the subscriber has an `error` callback: give it one,
   * and catch errors in its `next`.
   */
  readonly events$: Observable<DebateSpaceEvent>;

  constructor(source: Subject<DebateSpaceEvent>) {
    const containment = new Containment(source.next.bind(source));
    this.events$ = new ContainedObservable(containment, source);
  }
}
