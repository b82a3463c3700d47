import { Observable, Subscriber, type Observer, type Subscription } from 'rxjs';
import type { Containment } from './containment.js';

/**
 * An observable whose subscribers may throw: RxJS reports that as an uncaught exception, which ends the host's process.
 * A subscriber behind operators, such as after `pipe`, is one of RxJS.
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
    if (observer instanceof Subscriber) return super.subscribe(observer);
    const given = typeof observer === 'function' ? { next: observer, error, complete } : (observer ?? {});
    return super.subscribe({
      next: (value) => {
        this.#containment.run('a subscriber of events$', () => given.next?.(value));
      },
      error: (reason: unknown) => given.error?.(reason),
      complete: () => {
        this.#containment.run('a subscriber of events$', () => given.complete?.());
      },
    });
  }
}
