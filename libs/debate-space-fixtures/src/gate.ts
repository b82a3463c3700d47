/** Opens when it has been told so as often as it was made for. */
export class Gate {
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
