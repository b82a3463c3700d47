/** The demo's account of itself: one sentence a line, with ✓ or ✗. */
export class Report {
  #failures = 0;

  get failures(): number {
    return this.#failures;
  }

  heading(text: string): void {
    console.log(`\n${text}`);
  }

  check(sentence: string, holds: boolean): void {
    if (!holds) this.#failures += 1;
    console.log(`  ${holds ? '✓' : '✗'} ${sentence}`);
  }
}
