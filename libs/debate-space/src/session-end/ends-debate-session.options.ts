export const ENDS_DEBATE_SESSION = 'debate-space:ends-session';

export interface EndsDebateSessionOptions {
  /**
   * Finds the user in the request, before the handler runs. Default: `request.user` as a string, a number, or an object
   * with `uid`, `id`, `sub` or `userId`.
   */
  readonly uid?: ((request: Readonly<Record<string, unknown>>) => string | number | undefined) | undefined;
  /** Which application is told, when the host has several with a `name`. */
  readonly name?: string | undefined;
}
