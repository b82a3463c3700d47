import { JSON_TYPE, type Answer } from '../service/answer.js';
import type { Fault } from './fault.js';

/** An answer that takes the place of the real one. */
export interface Substitute {
  readonly kind: Fault['kind'];
  /** Whether the operation is applied all the same. */
  readonly applies: boolean;
  readonly answer: Answer;
}

/** The substitute a fault prescribes; undefined for the kinds that only disturb the real answer. */
export function substituteAnswer(fault: Fault): Substitute | undefined {
  switch (fault.kind) {
    case 'status': {
      const body = fault.body ?? { success: false, error: `Status ${fault.status}` };
      const answer = answerWith(fault.status, JSON_TYPE, body, fault.headers);
      return { kind: fault.kind, applies: false, answer };
    }
    case 'body': {
      const answer = answerWith(fault.status ?? 200, fault.contentType ?? JSON_TYPE, fault.body);
      return { kind: fault.kind, applies: fault.apply ?? false, answer };
    }
    case 'redirect': {
      const answer = { status: fault.status ?? 302, headers: { location: fault.location }, body: '' };
      return { kind: fault.kind, applies: false, answer };
    }
    default:
      return undefined;
  }
}

function answerWith(
  status: number,
  contentType: string,
  body: unknown,
  headers: Record<string, string> = {},
): Answer {
  const own = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    status,
    headers: { 'content-type': contentType, ...Object.fromEntries(own) },
    body: typeof body === 'string' || body === undefined ? (body ?? '') : JSON.stringify(body),
  };
}
