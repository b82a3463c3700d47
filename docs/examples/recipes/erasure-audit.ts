import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { Subscription } from 'rxjs';
import { DebateSpaceEvents } from 'nestjs-debate-space';

@Injectable()
export class ErasureAudit implements OnModuleDestroy {
  readonly #subscription: Subscription;

  constructor(debateSpace: DebateSpaceEvents) {
    this.#subscription = debateSpace.events$.subscribe((event) => {
      if (event.type.startsWith('erasure')) this.append({ at: new Date(), ...event });
    });
  }

  onModuleDestroy(): void {
    this.#subscription.unsubscribe();
  }

  /** Writes to your audit log; it must not throw. */
  private append(entry: object): void {
    process.stdout.write(`${JSON.stringify(entry)}\n`);
  }
}
