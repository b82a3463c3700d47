import type { ExecutionContext } from '@nestjs/common';
import { uidOf } from './default-session-uid.js';

/** Whoever asks a handler: a request, a client of a gateway, or the message of a microservice. */
export type Requester = Readonly<Record<string, unknown>>;

export interface Asked {
  readonly requester: Requester;
  /** What lives as long as this request and no longer, such as its response: by these, it tells once of each uid. */
  readonly marks: readonly unknown[];
}

/** The request of HTTP or of a GraphQL context, or the client of a WebSocket, without a need for their packages. */
export function askedBy(context: ExecutionContext): Asked {
  const first = context.getArgByIndex<Requester>(0);
  switch (context.getType<string>()) {
    case 'ws':
      return { requester: first, marks: [] }; // a client may log in and out many times
    case 'graphql': {
      const graphql = context.getArgByIndex<unknown>(2);
      const requester = requestIn(graphql);
      // Over a WebSocket, only the context is new for each operation: the request is the connection's, without a response.
      return { requester, marks: [graphql, memberOf(requester, 'res')] };
    }
    case 'http': {
      const response = context.getArgByIndex<unknown>(1);
      return { requester: first, marks: [memberOf(response, 'raw') ?? response] }; // `raw` is Fastify's
    }
    default:
      return { requester: first, marks: [] }; // a message is handled once
  }
}

/** Where the drivers put it; `reply.request` is mercurius'. A context without a request may have the user itself. */
function requestIn(graphql: unknown): Requester {
  const reply = memberOf(graphql, 'reply');
  const request = memberOf(graphql, 'req') ?? memberOf(graphql, 'request') ?? memberOf(reply, 'request');
  return (request ?? graphql) as Requester;
}

/** Where guards and passport leave the user: `user`, or with socket.io `data.user` or the handshake's `request.user`. */
export function userOf(requester: unknown): unknown {
  const among = [requester, memberOf(requester, 'data'), memberOf(requester, 'request')];
  return among.map((each) => memberOf(each, 'user')).find((user) => user !== undefined && user !== null);
}

export function defaultUid(requester: Requester): string | undefined {
  return uidOf(userOf(requester));
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
