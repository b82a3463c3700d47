import type { Ending } from './endings.js';
import type { HandledStore } from '../hosts/session-jobs.js';
import type { Handling } from './handling.js';

/** Of hosts whose sessions run out: long enough for a busy machine to log in. */
export const SHORT_MAX_AGE_MS = 3_000;

export type Act = (handling: Handling) => unknown;
type Platform = Handling['platform'];

/** A row of sessions in a store. Without more, all stacks of sessions in a store have it. */
export interface Row extends Ending<Handling> {
  readonly on?: Platform;
  /** What logs in: the session library alone, or passport. */
  readonly login?: 'session' | 'passport';
  /** Whether the stacks have it that differ from another one by where sessions or users are kept. */
  readonly core?: boolean;
  /** Whether it needs a store that can fail, list and clear. */
  readonly fails?: boolean;
  /** The option of the plugin, where the row is about it. */
  readonly graceMs?: number;
  /** In place of the act: what happens without any request to the only session that there is. */
  readonly job?: (store: HandledStore, sid: string) => unknown;
  /**
   * `expiry`: the option; `own store`: that of @fastify/session, which keeps what has run out; `rolling`: the option of
   * express-session, by which each answer sets the cookie again.
   */
  readonly needs?: 'expiry' | 'own store' | 'rolling';
}
type More = Omit<Row, 'name' | 'ends' | 'act'>;

export const ends = (name: string, act: Act, more: More = {}): Row => ({ name, ends: true, act, ...more });
export const stays = (name: string, act: Act, more: More = {}): Row => ({ name, ends: false, act, ...more });

export const core = { core: true } as const;
export const later = { later: true } as const;
export const aborts = { aborts: true } as const;
export const onExpress = { on: 'express' } as const;
export const onFastify = { on: 'fastify' } as const;
export const withPassport = { login: 'passport' } as const;
export const withoutPassport = { login: 'session' } as const;

/** What no library writes, and any browser may send. */
export const oddCookies = ['a b=1', '\u00fc=1', '=x', '__proto__=1', 'a="', '%=%zz', 'lang'];

export const nothing = (): void => undefined;
export const destroy: Act = (handler) => handler.destroy();
export const removeUser: Act = ({ session }) => {
  delete session.user;
};
export const removeUserAndSave: Act = async (handler) => {
  delete handler.session.user;
  await handler.save();
};
export const renew: Act = async (handler) => {
  await handler.regenerate();
  await handler.logIn('alice');
};
