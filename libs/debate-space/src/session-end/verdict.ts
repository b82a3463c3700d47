import type { StoreOutcome } from './store-calls.js';

/** Why a session may have ended: by a call of its store; by the cookie that its browser lost; by a call that names no session. */
export type Cause = 'store call' | 'lost cookie' | 'unnamed';

/**
 * The session with which a request that owns the session is answered. `kept`: the same one with its user; `continues`: another
 * one with the same user, whose cookie can reach the browser; `left`: anything else; `reads`: the same one without a user,
 * by a request that may not have made the call.
 */
export type Shown = 'kept' | 'continues' | 'left' | 'reads';

/**
 * `continued`: the user has another session now, and this one is over. Where the store has to be read: `ended if stored`;
 * `ended if missing`, once; `ended if surely missing`: not when the store cannot be read; `ended when missing`, several times.
 */
export type Verdict =
  | 'ended'
  | 'stays'
  | 'continued'
  | 'ended if stored'
  | 'ended if missing'
  | 'ended if surely missing'
  | 'ended when missing';

/** `both`: one owner left without the user, and another one kept the session. */
type Owners = 'left' | 'both' | 'continues' | 'kept' | 'none';

type Row = readonly [cause: Cause, call: StoreOutcome | 'any', owners: Owners | 'any', verdict: Verdict];

/**
 * The decision about a session that may have ended (session-endings.md, rules 3, 4, 6 and 9). The first row that fits counts.
 * The store of a call that is still open is read like that of a `silent` one.
 */
export const VERDICTS: readonly Row[] = [
  ['unnamed', 'failed', 'any', 'stays'],
  ['unnamed', 'any', 'any', 'ended'],
  // Not stored: another instance has ended it, and reported it.
  ['lost cookie', 'any', 'any', 'ended if stored'],
  // The failure may have come after the effect.
  ['store call', 'failed', 'any', 'ended if surely missing'],
  ['store call', 'any', 'continues', 'continued'],
  // A request that left without the user outweighs one that saved the session back.
  ['store call', 'any', 'both', 'ended'],
  ['store call', 'done', 'left', 'ended'],
  ['store call', 'done', 'none', 'ended'],
  ['store call', 'done', 'kept', 'ended if missing'],
  ['store call', 'silent', 'any', 'ended when missing'],
];

/** @param shown by the owners. Of two requests at once, one may renew the session and one log out: then it was left */
export function verdictOn(cause: Cause, outcome: StoreOutcome | undefined, shown: readonly Shown[]): Verdict {
  const owners = together(shown);
  const call = outcome ?? 'silent';
  const row = VERDICTS.find(
    (each) =>
      each[0] === cause &&
      (each[1] === 'any' || each[1] === call) &&
      (each[2] === 'any' || each[2] === owners),
  );
  return row?.[3] ?? 'ended when missing';
}

function together(shown: readonly Shown[]): Owners {
  const isKept = shown.includes('kept');
  if (shown.includes('left')) return isKept ? 'both' : 'left';
  if (shown.includes('continues')) return 'continues';
  return isKept ? 'kept' : 'none';
}
