import type { ExecutionContext } from '@nestjs/common';
import { uidOf } from 'nestjs-session-end';

/** A request, a client of a gateway, or the message of a microservice. */
export type HandlerRequest = Readonly<Record<string, unknown>>;

export interface HandlerCall {
  readonly request: HandlerRequest;
  /** What lives as long as this request and no longer, such as its response: by these, each uid is reported once. */
  readonly marks: readonly unknown[];
}

/** The request of HTTP or of a GraphQL context, or the client of a WebSocket, without a need for their packages. */
export function requestOf(context: ExecutionContext): HandlerCall {
  const first = context.getArgByIndex<HandlerRequest>(0);
  switch (context.getType<string>()) {
    case 'graphql': {
      const graphql = context.getArgByIndex<unknown>(2);
      const request = requestIn(graphql);
      // Over a WebSocket, only the context is new for each operation: the request is the connection's, without a response.
      return { request, marks: [graphql, memberOf(request, 'res')] };
    }
    case 'http': {
      const response = context.getArgByIndex<unknown>(1);
      return { request: first, marks: [memberOf(response, 'raw') ?? response] }; // `raw` is Fastify's
    }
    default:
      // A client of a WebSocket may log in and out many times; a message is handled once.
      return { request: first, marks: [] };
  }
}

/** Where the drivers put it; `reply.request` is mercurius'. A context without a request may have the user itself. */
function requestIn(graphql: unknown): HandlerRequest {
  const reply = memberOf(graphql, 'reply');
  const request = memberOf(graphql, 'req') ?? memberOf(graphql, 'request') ?? memberOf(reply, 'request');
  return (request ?? graphql) as HandlerRequest;
}

/** Where guards and passport leave the user: `user`, or with socket.io `data.user` or the handshake's `request.user`. */
export function userOf(request: unknown): unknown {
  const places = [request, memberOf(request, 'data'), memberOf(request, 'request')];
  return places.map((each) => memberOf(each, 'user')).find((user) => user !== undefined && user !== null);
}

export function defaultUid(request: HandlerRequest): string | undefined {
  return uidOf(userOf(request));
}

function memberOf(value: unknown, name: string): unknown {
  return isObject(value) ? Reflect.get(value, name) : undefined;
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
