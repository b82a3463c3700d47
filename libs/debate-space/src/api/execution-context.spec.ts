import { describe, expect, it } from '@jest/globals';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { defaultUid, requestOf } from './session-end.interceptor.js';

function callOf(type: string, ...args: unknown[]): ReturnType<typeof requestOf> {
  const context = new ExecutionContextHost(args);
  context.setType(type);
  return requestOf(context);
}

const request = { user: { sub: 'alice' } };
const client = { user: 'alice' };
const response = { once: () => undefined };

describe('the caller of a handler', () => {
  it.each([
    { who: 'the request of HTTP', args: [request], type: 'http' },
    { who: 'the message of a microservice', args: [{ user: 7 }], type: 'rpc', uid: '7' },
    { who: 'req of a GraphQL context', args: [{}, {}, { req: request }], type: 'graphql' },
    { who: 'request of a GraphQL context', args: [{}, {}, { request }], type: 'graphql' },
    { who: 'mercurius’ reply of a GraphQL context', args: [{}, {}, { reply: { request } }], type: 'graphql' },
    { who: 'a GraphQL context without a request', args: [{}, {}, request], type: 'graphql' },
    { who: 'the client of ws', args: [client, 'data'], type: 'ws' },
    { who: 'the client of socket.io', args: [{ data: { user: 'alice' } }], type: 'ws' },
    { who: 'the handshake of socket.io', args: [{ data: {}, request }], type: 'ws' },
    { who: 'no GraphQL context', args: [], type: 'graphql', uid: undefined },
    { who: 'a text', args: ['alice'], type: 'http', uid: undefined },
    { who: 'a request that nobody has logged in', args: [{ user: null }], type: 'http', uid: undefined },
  ])('is $who', ({ type, args, ...expected }) => {
    const { uid } = { uid: 'alice', ...expected };
    expect(defaultUid(callOf(type, ...args).request)).toBe(uid);
  });

  const overHttp = { req: { ...request, res: response } };
  const overWebSocket = { req: request };
  it.each([
    { who: 'Express by the response', args: [request, response], type: 'http', marks: [response] },
    { who: 'Fastify by the response', args: [request, { raw: response }], type: 'http', marks: [response] },
    {
      who: 'GraphQL by the context and the response',
      args: [{}, {}, overHttp],
      type: 'graphql',
      marks: [overHttp, response],
    },
    {
      who: 'GraphQL over a WebSocket by the context',
      args: [{}, {}, overWebSocket],
      type: 'graphql',
      marks: [overWebSocket],
    },
    { who: 'a WebSocket by nothing', args: [client], type: 'ws', marks: [] },
    { who: 'a microservice by nothing', args: [{ user: 7 }, {}], type: 'rpc', marks: [] },
  ])('is recognized again in $who', ({ type, args, marks }) => {
    expect(callOf(type, ...args).marks.filter((mark) => mark !== undefined)).toEqual(marks);
  });
});
