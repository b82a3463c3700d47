import { InvalidLogoutToken, type LogoutTokenVerifier } from '../logout-token.js';
import { jsonAnswer, formFields, Refusal } from '../service/http.js';
import type { Perform } from '../service/contract-route.js';
import type { DebateSessions } from '../state/debate-sessions.js';

/** Section 4.5. A user who is not signed in is logged out already, hence 200 as well. */
export function logOutUser(
  applicationName: string,
  verifier: LogoutTokenVerifier,
  debate: DebateSessions,
): Perform {
  return (call) => {
    if (call.params.application_name !== applicationName) {
      throw Refusal.of(404, 'No application has this name');
    }
    const token = formFields(call).get('logout_token');
    if (token === undefined) throw Refusal.oauth(400, 'invalid_request', 'logout_token is missing');
    try {
      debate.signOut(verifier.verify(token).sub);
    } catch (error) {
      throw error instanceof InvalidLogoutToken
        ? Refusal.oauth(400, 'invalid_request', error.message)
        : error;
    }
    return jsonAnswer(200, { success: true }, { 'cache-control': 'no-store' });
  };
}
