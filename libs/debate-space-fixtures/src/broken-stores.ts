import { PrototypeStore, type Callback } from './contract-stores.js';

const DOWN = 'the store is down';

/** A store that changes nothing any more when it has broken. */
export abstract class BreakableStore extends PrototypeStore {
  broken = false;

  protected override change(work: () => unknown, callback?: Callback): unknown {
    return this.broken ? this.fail(callback) : super.change(work, callback);
  }
  protected abstract fail(callback?: Callback): unknown;
}

export class ErrorStore extends BreakableStore {
  protected override fail(callback?: Callback): void {
    setImmediate(() => callback?.call(this, new Error(DOWN), 'and more'));
  }
}
export class RejectingStore extends BreakableStore {
  protected override fail(): Promise<never> {
    return Promise.reject(new Error(DOWN));
  }
}
export class ThrowingStore extends BreakableStore {
  protected override fail(): never {
    throw new Error(DOWN);
  }
}
