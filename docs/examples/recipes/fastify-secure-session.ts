import type { FastifyInstance } from 'fastify';
import type { SessionCookie } from 'nestjs-debate-space';

type Decoder = Record<'decodeSecureSession', (value: string) => { get(key: string): unknown } | null>;

/** In `useFactory` with `inject: [HttpAdapterHost]`: `sessionCookie(() => httpAdapter.getInstance())`. */
export const sessionCookie = (fastify: () => FastifyInstance & Decoder): SessionCookie => ({
  name: 'session',
  uid: (value) => {
    const session = fastify().decodeSecureSession(value);
    return (session?.get('user') ?? session?.get('passport')) as string | undefined; // the second is of @fastify/passport
  },
});
