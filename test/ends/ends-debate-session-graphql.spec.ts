import 'reflect-metadata';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { describe, expect, it } from '@jest/globals';
import { GraphQLModule, Mutation, Query, Resolver } from '@nestjs/graphql';
import type { NextFunction, Request, Response } from 'express';
import { EndsDebateSession } from 'nestjs-debate-space';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { scenario } from '#support/hosts/scenario.js';

type Header = Record<string, string>;
interface Connection {
  readonly request: IncomingMessage;
}

@Resolver()
class LogoutResolver {
  @Query(() => String)
  hello(): string {
    return 'hello';
  }

  @Mutation(() => String)
  @EndsDebateSession()
  logout(): string {
    return 'bye';
  }

  @Mutation(() => String)
  @EndsDebateSession()
  logoutFails(): never {
    throw new Error('still logged in');
  }

  @Mutation(() => String)
  @EndsDebateSession({ uid: (_, context) => context.getArgByIndex<{ tenant: string }>(2).tenant })
  logoutByContext(): string {
    return 'bye';
  }
}

const scene = scenario();

async function start(options: Partial<ApolloDriverConfig> = {}): Promise<string> {
  const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({
    driver: ApolloDriver,
    autoSchemaFile: true,
    ...options,
  });
  const app = await scene.app({}, { imports: [graphql], providers: [LogoutResolver] });
  // Stands for a JWT guard: the user is on the request, and in no session.
  app.use((request: Request, _: Response, next: NextFunction) => {
    const uid = request.get('x-jwt');
    if (uid !== undefined) Object.assign(request, { user: { sub: uid } });
    next();
  });
  await app.listen(0, '127.0.0.1');
  return app.getUrl();
}

/** Whether a mutation answers with an error. */
async function hasFailed(url: string, mutation: string, headers: Header): Promise<boolean> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query: `mutation { ${mutation} }` }),
  });
  return 'errors' in ((await response.json()) as object);
}

/** One step of the protocol graphql-transport-ws: resolves when an answer of that type has come. */
async function exchange(socket: WebSocket, message: object, awaited: string): Promise<void> {
  const answered = new Promise<void>((resolve) => {
    socket.on('message', (data: Buffer) => {
      if ((JSON.parse(data.toString()) as { type: string }).type === awaited) resolve();
    });
  });
  socket.send(JSON.stringify(message));
  await answered;
}

const alice = { 'x-jwt': 'alice' };

describe('@EndsDebateSession() on a GraphQL mutation', () => {
  interface Case {
    readonly name: string;
    readonly mutation: string;
    readonly headers?: Header;
    readonly fails?: boolean;
    readonly logouts: readonly string[];
  }
  const cases: Case[] = [
    {
      name: 'ends the session of the request’s user when it succeeds',
      mutation: 'logout',
      headers: alice,
      logouts: ['alice'],
    },
    { name: 'stays silent when it fails', mutation: 'logoutFails', headers: alice, fails: true, logouts: [] },
    {
      name: 'takes the uid from its uid function, which reads the context',
      mutation: 'logoutByContext',
      headers: alice,
      logouts: ['bob'],
    },
    {
      name: 'is one logout when one request asks twice',
      mutation: 'logout again: logout',
      headers: alice,
      logouts: ['alice'],
    },
    {
      name: 'counts when it succeeds beside one that fails',
      mutation: 'logout logoutFails',
      headers: alice,
      fails: true,
      logouts: ['alice'],
    },
  ];
  it.each(cases)('$name', async ({ mutation, headers = {}, fails = false, logouts }) => {
    const url = await start({ context: () => ({ tenant: 'bob' }) });
    expect(await hasFailed(url, mutation, headers)).toBe(fails);
    expect(await scene.logouts()).toEqual(logouts);
  });

  it('is a logout each time that it is asked over one and the same WebSocket', async () => {
    const url = await start({
      subscriptions: {
        'graphql-ws': {
          onConnect: ({ extra }) =>
            void Object.assign((extra as Connection).request, { user: { sub: 'alice' } }),
        },
      },
      context: ({ req, extra }: { req?: Request; extra: Connection }) => ({ req: req ?? extra.request }),
    });
    const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    await once(socket, 'open');
    await exchange(socket, { type: 'connection_init' }, 'connection_ack');
    for (const id of ['first', 'second']) {
      await exchange(
        socket,
        { id, type: 'subscribe', payload: { query: 'mutation { logout }' } },
        'complete',
      );
    }
    socket.close();
    expect(await scene.logouts()).toEqual(['alice', 'alice']);
  });
});
