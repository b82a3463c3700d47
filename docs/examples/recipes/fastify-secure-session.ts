import type { FastifyInstance } from 'fastify';
import type { SessionCookie } from 'nestjs-debate-space';

type Decoder = Record<'decodeSecureSession', (value: string) => { get(key: string): unknown } | null>;

/** In `useFactory` with `inject: [HttpAdapterHost]`: `sessionCookie(() => httpAdapter.getInstance())`. */
export const sessionCookie = (fastify: () => FastifyInstance & Decoder): SessionCookie => ({
  name: 'session',
  uid: (value) => fastify().decodeSecureSession(value)?.get('user') as string | undefined, // @fastify/passport: 'passport'
});
