import { describe, expect, it } from '@jest/globals';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { defaultUid, requestOf } from './session-end.interceptor.js';

function callOf(type: string, ...args: unknown[]): ReturnType<typeof requestOf> {
  const context = new ExecutionContextHost(args);
  context.setType(type);
  return requestOf(context);
}

const request = { user: { sub: 'alice' } };
const response = { once: () => undefined };

describe('the caller of a handler', () => {
  it.each([
    { who: 'the request of HTTP', args: [request], type: 'http' },
    { who: 'req of a GraphQL context', args: [{}, {}, { req: request }], type: 'graphql' },
    { who: 'request of a GraphQL context', args: [{}, {}, { request }], type: 'graphql' },
    { who: 'mercurius’ reply of a GraphQL context', args: [{}, {}, { reply: { request } }], type: 'graphql' },
    { who: 'a GraphQL context without a request', args: [{}, {}, request], type: 'graphql' },
    { who: 'no GraphQL context', args: [], type: 'graphql', uid: undefined },
    { who: 'a text', args: ['alice'], type: 'http', uid: undefined },
    { who: 'a request that nobody has logged in', args: [{ user: null }], type: 'http', uid: undefined },
  ])('is $who', ({ type, args, ...expected }) => {
    const { uid } = { uid: 'alice', ...expected };
    expect(defaultUid(callOf(type, ...args)?.request ?? {})).toBe(uid);
  });

  it.each(['ws', 'rpc'])('is nobody whom the decorator could log out in a context of type %s', (type) => {
    expect(callOf(type, request)).toBeUndefined();
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
  ])('is recognized again in $who', ({ type, args, marks }) => {
    expect(callOf(type, ...args)?.marks.filter((mark) => mark !== undefined)).toEqual(marks);
  });
});
