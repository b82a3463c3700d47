import { type JsonObject, parseCompactJws } from './logout-token.js';
import { EventEmitter } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import type { ServiceCall } from './service/http.js';

/** The endpoint of a request, of sections 4.1 to 4.5; `unknown` for all others. */
export type Operation = 'token' | 'anonymize' | 'delete' | 'list' | 'logout' | 'unknown';

/** One request that reached the server. Holds no secret: keys and tokens are left out or replaced. */
export interface ReceivedRequest {
  readonly operation: Operation;
  readonly method: string;
  /** As sent, still percent-encoded, without the query. */
  readonly path: string;
  /** Arrival in milliseconds since the epoch, by this machine's clock. */
  readonly at: number;
  /** The status answered; absent when the connection ended without one. */
  readonly status?: number;
  /** Whether the service performed the operation. A simulated failure may still have spoilt the answer. */
  readonly accepted: boolean;
  /** Why it was not done. */
  readonly reason?: string;
  /** The user concerned: from the path, or `sub` of the logout token. */
  readonly uid?: string;
  /** Query parameters; a repeated one is an array. */
  readonly query?: Readonly<Record<string, string | string[]>>;
  /** Claims of the logout token: verified when `accepted`, else merely decoded. */
  readonly claims?: JsonObject;
  /** `accept`, `content-type`, `content-length`, `user-agent`, and the bare scheme of `authorization`. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A request whose outcome is still open. */
export type RequestDraft = Omit<ReceivedRequest, 'status' | 'accepted' | 'reason'>;

/** Which requests are meant: those of one operation, or those a predicate picks. */
export type RequestMatch = Operation | ((request: ReceivedRequest) => boolean);

/** How many requests `waitFor` waits for, and for how long. */
export interface WaitOptions {
  /** How many requests must match. Default 1. */
  count?: number;
  /** How long to wait, in milliseconds. Default 4000: a test of Jest or Vitest may take 5000. */
  timeoutMs?: number;
}

/**
 * Everything that reached the server, in the order in which the outcomes were decided. A request is on
 * record before its answer is sent, so a client that has an answer finds its request here.
 */
export class ReceivedRequests {
  readonly #requests: ReceivedRequest[] = [];
  readonly #arrivals = new EventEmitter<{ arrival: [] }>().setMaxListeners(0);

  get all(): readonly ReceivedRequest[] {
    return [...this.#requests];
  }

  get count(): number {
    return this.#requests.length;
  }

  of(operation: Operation): ReceivedRequest[] {
    return this.#requests.filter((request) => request.operation === operation);
  }

  /** The uids of the accepted logouts, in order. */
  get logouts(): string[] {
    return this.of('logout').flatMap(({ accepted, uid }) => (accepted && uid !== undefined ? [uid] : []));
  }

  /**
   * Resolves with the matching requests as soon as there are `count` of them; those on record count.
   * @throws Error after `timeoutMs`, naming what was received instead
   */
  waitFor(match: RequestMatch, options: WaitOptions = {}): Promise<ReceivedRequest[]> {
    const { count = 1, timeoutMs = 4000 } = options;
    const matches = typeof match === 'function' ? match : (r: ReceivedRequest) => r.operation === match;
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        clearTimeout(timer);
        this.#arrivals.off('arrival', check);
      };
      const check = (): void => {
        const found = this.#requests.filter(matches);
        if (found.length < count) return;
        stop();
        resolve(found);
      };
      const timer = setTimeout(() => {
        stop();
        const wanted = typeof match === 'function' ? 'matching' : match;
        reject(new Error(`Waited ${timeoutMs} ms for ${count} ${wanted} request(s). ${this.#summary()}`));
      }, timeoutMs);
      this.#arrivals.on('arrival', check);
      check();
    });
  }

  /** Puts a request on record. Called by the server. */
  record(request: ReceivedRequest): void {
    this.#requests.push(Object.freeze(request));
    this.#arrivals.emit('arrival');
  }

  #summary(): string {
    if (this.#requests.length === 0) return 'Nothing was received.';
    const lines = this.#requests.map(({ method, path, status, accepted, reason }) => {
      const outcome = status === undefined ? 'no answer' : `status ${status}`;
      return `${method} ${path}: ${outcome}, ${accepted ? 'accepted' : `not accepted: ${reason ?? '?'}`}`;
    });
    return ['Received:', ...lines].join('\n  ');
  }
}

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
  const found = KEPT_HEADERS.map((name) => [name, headers[name]] as const);
  const kept = Object.fromEntries(found.filter(([, value]) => value !== undefined)) as Record<string, string>;
  // A credential sent without a scheme would pass for one, hence the list.
  const scheme = /^(Bearer|Basic|Digest) /i.exec(headers.authorization ?? '')?.[1];
  if (headers.authorization !== undefined) kept.authorization = scheme ?? '[no known scheme]';
  return kept;
}
