import type { IncomingHttpHeaders } from 'node:http';
import { parseCompactJws } from '../logout-token/compact-jws.js';
import type { JsonObject } from '../logout-token/json-object.js';
import type { ServiceCall } from '../service/service-call.js';
import type { Operation } from './operation.js';
import type { RequestDraft } from './received-request.js';

const SECRET_PARAMETERS = new Set(['api_key', 'access_token', 'client_id', 'client_secret', 'logout_token']);
const KEPT_HEADERS = ['accept', 'content-type', 'content-length', 'user-agent'] as const;

/** Describes a request for the record, leaving the secrets out. */
export function draftRequest(operation: Operation, call: ServiceCall, at: number): RequestDraft {
  const claims = operation === 'logout' ? decodedClaims(call.body) : undefined;
  const uid = call.params.uid ?? claims?.sub;
  return {
    operation,
    method: call.method,
    path: call.path,
    at,
    ...(typeof uid === 'string' && { uid }),
    ...(Object.keys(call.query).length > 0 && { query: withoutSecrets(call.query) }),
    ...(claims !== undefined && { claims }),
    headers: keptHeaders(call.headers),
  };
}

/** A refused token is decoded too, because a test wants to see what was wrong with it. */
function decodedClaims(body: string): JsonObject | undefined {
  try {
    return parseCompactJws(new URLSearchParams(body).get('logout_token') ?? '').claims;
  } catch {
    return undefined;
  }
}

function withoutSecrets(query: ServiceCall['query']): Record<string, string | string[]> {
  const entries = Object.entries(query);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, SECRET_PARAMETERS.has(name) ? '[redacted]' : value]),
  );
}

function keptHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = headers[name];
    if (value !== undefined) kept[name] = value;
  }
  // A credential sent without a scheme would pass for one, hence the list.
  const scheme = /^(Bearer|Basic|Digest) /i.exec(headers.authorization ?? '')?.[1];
  if (headers.authorization !== undefined) kept.authorization = scheme ?? '[no known scheme]';
  return kept;
}
