import { once } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Ending } from '../endings.js';
import type { FastifyContext } from '../fastify-host.js';

/** The session of @fastify/session, under @fastify/passport or not. */
export interface FastifySession {
  user?: { uid: string } | undefined;
  readonly sessionId: string;
  readonly cookie: { maxAge: number | null; expires: Date | null };
  destroy(): Promise<void>;
  destroy(callback: (error?: unknown) => void): void;
  regenerate(keys?: string[]): Promise<void>;
  save(): Promise<void>;
  reload(): Promise<void>;
  touch(): void;
}

export interface FastifyStore {
  fail?(operation: 'destroy' | 'set', times: number): void;
  destroy(sid: string, callback: () => void): void;
  clear?(callback: () => void): void;
}

export interface Context extends FastifyContext {
  readonly session: FastifySession;
  readonly store: FastifyStore;
  readonly logIn: (uid: string) => Promise<void>;
}

/** What logs in: @fastify/session alone, or @fastify/passport. */
export type LoginKind = 'session' | 'passport';

export interface FastifyEnding extends Omit<Ending<Context>, 'act'> {
  readonly act?: (context: Context) => unknown;
  /** Default: all. */
  readonly logins?: readonly LoginKind[];
  /** Whether the store has to fail. */
  readonly fails?: boolean;
  /** In place of the act: what happens without any request to the only session that there is. */
  readonly job?: (store: FastifyStore, sid: string) => unknown;
  /** The store of @fastify/session itself keeps what has run out. */
  readonly needs?: 'own store';
}

export const sessionOf = (request: FastifyRequest): FastifySession =>
  request.session as unknown as FastifySession;
export const destroy = ({ session }: Context): Promise<void> => session.destroy();
export const removeUser = ({ session }: Context): void => {
  delete session.user;
};
export const closed = (reply: FastifyReply): Promise<unknown> => once(reply.raw, 'close');
