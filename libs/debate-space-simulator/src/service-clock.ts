/** The service's own idea of the time: this machine's clock plus an offset that tests may change. */
export class ServiceClock {
  /** @param offsetSeconds the service's clock minus this machine's, in seconds */
  constructor(public offsetSeconds: number) {}

  /** Milliseconds since the epoch. */
  nowMs(): number {
    return Date.now() + this.offsetSeconds * 1000;
  }

  /** Seconds since the epoch, with fractions. */
  nowSeconds(): number {
    return this.nowMs() / 1000;
  }
}
