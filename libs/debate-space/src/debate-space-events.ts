import { Subject, type Observable } from 'rxjs';
import type { DebateSpaceEvent } from './debate-space-event.js';

/** What happens in this application, as it happens. Injectable. */
export class DebateSpaceEvents {
  /** Hot: a subscriber sees what comes after it has subscribed. Completes when the app has shut down. */
  readonly events$: Observable<DebateSpaceEvent>;

  constructor(source: Subject<DebateSpaceEvent>) {
    this.events$ = source.asObservable();
  }
}
