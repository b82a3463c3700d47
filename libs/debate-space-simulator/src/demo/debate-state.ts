import { fullName } from '../state/simulated-user.js';
import type { DebateSessions } from '../state/debate-sessions.js';
import type { DemoMode } from './demo-mode.js';
import type { SimulatedUsers } from '../state/simulated-users.js';

/** What the page shows. `id` is the service's own number; `uid` and `name` are null for an anonymized user. */
export interface DebateState {
  mode: DemoMode;
  signedIn: string[];
  users: { id: number; uid: string | null; name: string | null; contributions: number }[];
}

export function debateState(mode: DemoMode, users: SimulatedUsers, debate: DebateSessions): DebateState {
  return {
    mode,
    signedIn: debate.signedIn(),
    users: users.all().map((user) => ({
      id: user.id,
      uid: user.uid,
      name: fullName(user),
      contributions: user.contributions,
    })),
  };
}
