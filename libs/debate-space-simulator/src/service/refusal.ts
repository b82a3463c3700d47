import { jsonAnswer, type Answer } from './answer.js';

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
