/** A scenario that this machine cannot play. What can be installed is never missing in CI: there it is a failure. */
export class Skipped extends Error {
  readonly isFailure: boolean;

  constructor(message: string, { canBeInstalled = false } = {}) {
    super(message);
    this.isFailure = canBeInstalled && process.env.CI === 'true';
  }
}
