import { fullName } from '../state/simulated-user.js';
import type { DebateSessions } from '../state/debate-sessions.js';
import type { SimulatedUsers } from '../state/simulated-users.js';

/** What the page shows. `uid` and `name` are null for an anonymized user. */
export interface DebateState {
  signedIn: string[];
  users: { uid: string | null; name: string | null; contributions: number }[];
}

export function debateState(users: SimulatedUsers, debate: DebateSessions): DebateState {
  return {
    signedIn: debate.signedIn(),
    users: users.all().map((user) => ({
      uid: user.uid,
      name: fullName(user),
      contributions: user.contributions,
    })),
  };
}
