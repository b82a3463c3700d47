import { jsonAnswer } from '../service/answer.js';
import type { Perform } from '../service/contract-route.js';
import { formFields } from '../service/form-fields.js';
import { Refusal } from '../service/refusal.js';
import type { SimulatorSettings } from '../simulator-options.js';
import type { AccessTokens } from '../state/access-tokens.js';
import { sameSecret } from './same-secret.js';

/** Section 4.1. Errors are those of RFC 6749, section 5.2. */
export function obtainToken(
  { apiKey, secretKey }: Pick<SimulatorSettings, 'apiKey' | 'secretKey'>,
  tokens: AccessTokens,
): Perform {
  return (call) => {
    const fields = formFields(call);
    const grantType = fields.get('grant_type');
    if (grantType === undefined) throw Refusal.oauth(400, 'invalid_request', 'grant_type is missing');
    // Both are compared whatever the first says, so that the time taken does not tell them apart.
    const knownClient = sameSecret(fields.get('client_id') ?? '', apiKey);
    const knownSecret = sameSecret(fields.get('client_secret') ?? '', secretKey);
    if (!knownClient || !knownSecret) {
      throw Refusal.oauth(401, 'invalid_client', 'client_id or client_secret is wrong');
    }
    if (grantType !== 'client_credentials') {
      throw Refusal.oauth(400, 'unsupported_grant_type', 'grant_type must be client_credentials');
    }
    const scope = fields.get('scope');
    if (scope !== 'authentication' && scope !== 'public') {
      throw Refusal.oauth(400, 'invalid_scope', 'scope must be authentication or public');
    }
    return jsonAnswer(200, tokens.issue(scope), { 'cache-control': 'no-store' });
  };
}
