import type { Request, Response } from 'express';
import type { Store } from 'express-session';
import type { Ending } from '../endings.js';
import type { Act, SessionStack } from '../session-host.js';

/** Of hosts whose sessions run out: long enough for a busy machine to log in. */
export const SHORT_MAX_AGE_MS = 3_000;

export interface ExpressContext {
  readonly request: Request;
  readonly response: Response;
  readonly store: Store;
}

export interface ExpressEnding extends Omit<Ending<ExpressContext>, 'act'> {
  readonly act?: Act;
  /** In place of the act: what happens without any request to the only session that there is. */
  readonly job?: (store: Store, sid: string) => unknown;
  /** Default: all. */
  readonly stacks?: readonly SessionStack[];
  /** Whether the columns have it that differ from another one by where sessions or users are kept. */
  readonly core?: boolean;
  /** Whether it needs `session.expiry`. */
  readonly expires?: boolean;
}
