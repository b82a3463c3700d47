import { Observable, type Subject, type Observer, type Subscription, type Unsubscribable } from 'rxjs';
import { Containment, faultsTo } from '../async/containment.js';
import type { DebateSpaceEvent } from '../events.js';

/**
 * The events of this application. Injectable.
 *
 * @example
 * events.events$.subscribe(({ type }) => metrics.increment(`debate_space.${type}`));
 */
export class DebateSpaceEvents {
  /**
   * Hot: a subscriber gets the events that come after it has subscribed. Completes when the app has shut down. An error of a
   * direct subscriber becomes an event `fault`, and does not end the process. Behind `pipe`, RxJS reports errors of a
   * subscriber as uncaught exceptions, and errors of operators, too, unless the subscriber has an `error` callback: give it
   * one, and catch errors in its `next`.
   */
  readonly events$: Observable<DebateSpaceEvent>;

  constructor(source: Subject<DebateSpaceEvent>) {
    const containment = new Containment(faultsTo(source.next.bind(source)));
    this.events$ = new ContainedObservable(containment, source);
  }
}

const SUBSCRIBER = 'a subscriber of events$';

/** A subscriber of RxJS, of any copy of it, such as an operator or `firstValueFrom` makes. */
interface SubscriberLike {
  add(teardown: Unsubscribable): void;
}

/**
 * An observable whose direct subscribers may throw: RxJS reports that as an uncaught exception, which ends the host's
 * process. RxJS itself reports the errors of subscribers behind operators, such as after `pipe`.
 */
export class ContainedObservable<T> extends Observable<T> {
  readonly #containment: Containment;
  /** For the report of a failed subscriber: a subscriber that fails with the report, too, would be reported endlessly. */
  readonly #unreported = new Containment(() => undefined);

  constructor(containment: Containment, events: Observable<T>) {
    super((subscriber) => events.subscribe(subscriber));
    this.#containment = containment;
  }

  override subscribe(
    observer?: Partial<Observer<T>> | ((value: T) => void) | null,
    error?: ((error: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscription {
    const given = typeof observer === 'function' ? { next: observer, error, complete } : (observer ?? {});
    const subscription = super.subscribe({
      next: (value) => {
        const isReport = (value as { where?: unknown } | undefined)?.where === SUBSCRIBER;
        const containment = isReport ? this.#unreported : this.#containment;
        containment.run(SUBSCRIBER, () => given.next?.(value));
      },
      error: (reason: unknown) => given.error?.(reason),
      complete: () => {
        this.#containment.run(SUBSCRIBER, () => given.complete?.());
      },
    });
    // Otherwise unsubscribing the observer would not end the subscription.
    if (isSubscriber(given)) given.add(subscription);
    return subscription;
  }
}

/** Not by `instanceof`: a host may have a second copy of RxJS. */
function isSubscriber(observer: object): observer is SubscriberLike {
  const { add, unsubscribe } = observer as { add?: unknown; unsubscribe?: unknown };
  return typeof add === 'function' && typeof unsubscribe === 'function';
}
