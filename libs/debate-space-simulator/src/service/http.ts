import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** An HTTP answer, complete before any of it is sent. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

export function jsonAnswer(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return { status, headers: { 'content-type': JSON_TYPE, ...headers }, body: JSON.stringify(body) };
}

/** Thrown by an operation that is not done: the answer to send and the reason to put on record. */
export class Refusal extends Error {
  override readonly name = 'Refusal';

  constructor(
    readonly answer: Answer,
    reason: string,
  ) {
    super(reason);
  }

  /** In the form of the routes under `{base_url}`: `{ success: false, error }`. */
  static of(status: number, error: string, headers: Record<string, string> = {}): Refusal {
    return new Refusal(jsonAnswer(status, { success: false, error }, headers), error);
  }

  /** In the form of OAuth 2.0 (RFC 6749, section 5.2), which the logout route shares. */
  static oauth(status: number, error: string, description: string): Refusal {
    const headers = { 'cache-control': 'no-store' };
    const answer = jsonAnswer(status, { error, error_description: description }, headers);
    return new Refusal(answer, `${error}: ${description}`);
  }
}

/** A request as an operation sees it: read completely, path parameters decoded. */
export interface ServiceCall {
  readonly method: string;
  /** As sent, still percent-encoded, without the query. */
  readonly path: string;
  readonly params: Readonly<Partial<Record<string, string>>>;
  readonly query: Readonly<Record<string, string | string[]>>;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export const JSON_MEDIA_TYPE = 'application/json';
export const FORM_MEDIA_TYPE = 'application/x-www-form-urlencoded';

/** Whether a `Content-Type` header names this media type, parameters such as `charset` aside. */
export function hasMediaType(contentType: string | undefined, mediaType: string): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === mediaType;
}

/**
 * The form-style parameters of a request (sections 4.1 and 4.5).
 * @throws Refusal 400 `invalid_request` for another media type or a repeated parameter (RFC 6749, section 3.2)
 */
export function formFields(call: ServiceCall): ReadonlyMap<string, string> {
  if (!hasMediaType(call.headers['content-type'], FORM_MEDIA_TYPE)) {
    throw Refusal.oauth(400, 'invalid_request', `Content-Type must be ${FORM_MEDIA_TYPE}`);
  }
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(call.body)) {
    if (fields.has(name)) throw Refusal.oauth(400, 'invalid_request', `${name} is given more than once`);
    fields.set(name, value);
  }
  return fields;
}

/** No request of the interface needs more; anything longer is a mistake. */
const BODY_LIMIT_BYTES = 64 * 1024;

/** The client closed the connection before its request was complete. */
export class IncompleteRequest extends Error {
  override readonly name = 'IncompleteRequest';
}

/**
 * Reads a request body as UTF-8 text.
 * @throws Refusal 413 above the limit; IncompleteRequest when the client is gone
 */
export function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      // The rest flows on unread: an answer can only be seen by a client that is done sending.
      if (length <= BODY_LIMIT_BYTES) chunks.push(chunk);
    });
    request.on('end', () => {
      if (length <= BODY_LIMIT_BYTES) resolve(Buffer.concat(chunks).toString('utf8'));
      else reject(Refusal.of(413, `The body exceeds ${BODY_LIMIT_BYTES} bytes`));
    });
    const incomplete = (): void => {
      reject(new IncompleteRequest('the client closed the connection before its request was complete'));
    };
    request.on('error', incomplete);
    request.on('close', incomplete);
  });
}
