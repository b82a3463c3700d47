/** Why the app did not start, with a hint how to fix it: all that is printed. */
export class StartError extends Error {
  override name = 'StartError';
}
