import { InvalidLogoutToken } from './invalid-logout-token.js';
import { isJsonObject, type JsonObject } from './json-object.js';

/** A JWS in compact serialization (RFC 7515, section 7.1), decoded and not yet verified. */
export interface CompactJws {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly signingInput: string;
  readonly signature: Buffer;
}

/** @throws InvalidLogoutToken when the token is not three strictly encoded parts of the right kind */
export function parseCompactJws(token: string): CompactJws {
  const parts = token.split('.');
  const [header, claims, signature] = parts;
  if (parts.length !== 3 || header === undefined || claims === undefined || signature === undefined) {
    throw new InvalidLogoutToken('the token does not have three parts');
  }
  return {
    header: jsonObjectFrom(header, 'header'),
    claims: jsonObjectFrom(claims, 'claims set'),
    signingInput: `${header}.${claims}`,
    signature: bytesFrom(signature, 'signature'),
  };
}

function jsonObjectFrom(encoded: string, name: string): JsonObject {
  const bytes = bytesFrom(encoded, name);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new InvalidLogoutToken(`the ${name} is not JSON in UTF-8`);
  }
  if (!isJsonObject(value)) throw new InvalidLogoutToken(`the ${name} is not a JSON object`);
  return value;
}

/** Node's decoder skips what it does not know; only what it would write itself is base64url. */
function bytesFrom(encoded: string, name: string): Buffer {
  const bytes = Buffer.from(encoded, 'base64url');
  if (encoded === '' || bytes.toString('base64url') !== encoded) {
    throw new InvalidLogoutToken(`the ${name} is not base64url`);
  }
  return bytes;
}
