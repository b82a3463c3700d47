import type { ExecutionContext } from '@nestjs/common';

export const ENDS_DEBATE_SESSION = 'debate-space:ends-session';

export interface EndsDebateSessionOptions {
  /**
   * Finds the user before the handler runs: in the request, which for GraphQL is that of its context, or in the client
   * of a WebSocket; everything else is in the context. Default: `user`, or for socket.io `data.user` or `request.user`
   * – a string, a number, or an object with `uid`, `id`, `sub` or `userId`.
   */
  readonly uid?:
    | ((request: Readonly<Record<string, unknown>>, context: ExecutionContext) => string | number | undefined)
    | undefined;
  /** Which application is told, when the host has several with a `name`. */
  readonly name?: string | undefined;
}
