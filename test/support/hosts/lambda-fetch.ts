import type { Fetch } from '../browser/browser.js';

/** What the adapters for AWS Lambda make of an app. */
export type LambdaHandler = (event: object, context: object, callback?: () => void) => unknown;

interface LambdaResponse {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cookies?: readonly string[];
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

const WITHOUT_BODY = [204, 304];

/** Calls a lambda with the events of an HTTP API of Amazon's API Gateway (payload format 2.0). */
export function lambdaFetch(handler: LambdaHandler): Fetch {
  return async (url, { method = 'GET', headers, body }) => {
    const { pathname, search } = new URL(url);
    const { cookie = '', ...others } = Object.fromEntries(new Headers(headers));
    const isForm = body instanceof URLSearchParams;
    const event = {
      version: '2.0',
      routeKey: '$default',
      rawPath: pathname,
      rawQueryString: search.slice(1),
      cookies: cookie === '' ? [] : cookie.split('; '),
      headers: {
        ...others,
        ...(isForm && { 'content-type': 'application/x-www-form-urlencoded' }),
        host: 'lambda',
      },
      requestContext: {
        http: { method, path: pathname, protocol: 'HTTP/1.1', sourceIp: '127.0.0.1' },
        stage: '$default',
      },
      body: isForm ? body.toString() : undefined,
      isBase64Encoded: false,
    };
    const answer = (await handler(event, {}, () => undefined)) as LambdaResponse;
    const sent = new Headers(answer.headers);
    for (const each of answer.cookies ?? []) sent.append('set-cookie', each);
    const text = Buffer.from(answer.body ?? '', answer.isBase64Encoded ? 'base64' : 'utf8');
    const { statusCode: status } = answer;
    return new Response(WITHOUT_BODY.includes(status) ? null : text, { status, headers: sent });
  };
}
