import { InvalidLogoutToken } from '../logout-token/invalid-logout-token.js';
import type { LogoutTokenVerifier } from '../logout-token/logout-token-verifier.js';
import { jsonAnswer, type Answer } from '../service/answer.js';
import type { Perform } from '../service/contract-route.js';
import { formFields } from '../service/form-fields.js';
import { Refusal } from '../service/refusal.js';
import type { DebateSessions } from '../state/debate-sessions.js';

/** Section 4.5. A user who is not signed in is logged out already, hence 200 as well. */
export function logOutUser(
  applicationName: string,
  verifier: LogoutTokenVerifier,
  debate: DebateSessions,
): Perform {
  const signOut = ({ sub }: { readonly sub: string }): Answer => {
    debate.signOut(sub);
    return jsonAnswer(200, { success: true }, { 'cache-control': 'no-store' });
  };
  return (call) => {
    if (call.params.application_name !== applicationName) {
      throw Refusal.of(404, 'No application has this name');
    }
    const token = formFields(call).get('logout_token');
    if (token === undefined) throw Refusal.oauth(400, 'invalid_request', 'logout_token is missing');
    try {
      const claims = verifier.verify(token);
      return claims instanceof Promise ? claims.then(signOut).catch(refuse) : signOut(claims);
    } catch (error) {
      return refuse(error);
    }
  };
}

/** @throws Refusal for a token that breaks a rule; the error itself otherwise */
function refuse(error: unknown): never {
  if (!(error instanceof InvalidLogoutToken)) throw error;
  throw Refusal.oauth(400, 'invalid_request', error.message);
}
