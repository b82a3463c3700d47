/** Opens at the last of as many calls of `open()` as it was made for. */
export class Latch {
  #left: number;
  #open: () => void = () => undefined;
  readonly passed = new Promise<void>((resolve) => {
    this.#open = resolve;
  });

  constructor(times = 1) {
    this.#left = times;
  }

  open(): void {
    this.#left -= 1;
    if (this.#left <= 0) this.#open();
  }
}
