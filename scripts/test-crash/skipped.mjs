/** A scenario that this machine cannot play. What can be installed is never missing in CI: there it is a failure. */
export class Skipped extends Error {
  constructor(message, { canBeInstalled = false } = {}) {
    super(message);
    this.isFailure = canBeInstalled && process.env.CI === 'true';
  }
}
