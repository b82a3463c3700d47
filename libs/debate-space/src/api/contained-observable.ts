import { Observable, type Observer, type Subscription, type Unsubscribable } from 'rxjs';
import type { Containment } from '../async/containment.js';

/** A subscriber of RxJS, of any copy of it, such as an operator or `firstValueFrom` makes. */
interface SubscriberLike {
  add(teardown: Unsubscribable): void;
}

/**
 * An observable whose direct subscribers may throw: RxJS reports that as an uncaught exception, which ends the host's
 * process. What subscribers behind operators throw, such as after `pipe`, RxJS reports itself.
 */
export class ContainedObservable<T> extends Observable<T> {
  readonly #containment: Containment;

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
        this.#containment.run('a subscriber of events$', () => given.next?.(value));
      },
      error: (reason: unknown) => given.error?.(reason),
      complete: () => {
        this.#containment.run('a subscriber of events$', () => given.complete?.());
      },
    });
    // Otherwise its end would not end the subscription.
    if (isSubscriber(given)) given.add(subscription);
    return subscription;
  }
}

/** Not by `instanceof`: a host may have a second copy of RxJS. */
function isSubscriber(observer: object): observer is SubscriberLike {
  const { add, unsubscribe } = observer as { add?: unknown; unsubscribe?: unknown };
  return typeof add === 'function' && typeof unsubscribe === 'function';
}
