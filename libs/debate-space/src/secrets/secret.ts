import { inspect } from 'node:util';
import { timeoutOrThrow } from '../async/with-timeout.js';

/** Where a key comes from, asked whenever it is needed. */
export interface SecretSource {
  current(): Promise<Secret>;
}

/** A value that cannot be printed: `util.inspect`, `String()` and `JSON.stringify` all show `[secret]`. */
export class Secret implements SecretSource {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
    Object.freeze(this);
  }

  /** The value itself. Call it where the value is sent or imported, and keep the result in no property. */
  reveal(): string {
    return this.#value;
  }

  /** It never changes. */
  current(): Promise<Secret> {
    return Promise.resolve(this);
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}

const BASE64 = /^(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2,3}={0,2})?$/;

/** Why this text cannot be sent as it stands, as the rest of a sentence; `undefined` when it can. */
export function textProblem(text: string): string | undefined {
  if (text.trim() !== text || text === '') return 'must not be empty or have blanks around it';
  return text.isWellFormed() && !/\p{Cc}/u.test(text)
    ? undefined
    : 'must not have control characters or lone surrogates';
}

/** Why this cannot be the secret key, as the rest of a sentence; `undefined` when it can. */
export function validateSecretKey(key: string, encoding: 'utf8' | 'base64'): string | undefined {
  const isBase64 = encoding === 'utf8' || BASE64.test(key);
  return textProblem(key) ?? (isBase64 ? undefined : "is not Base64, and secretKeyEncoding is 'base64'");
}

const ANSWER_WITHIN_MS = 5_000;

/** A secret key could not be had; the message says why, and never what it was. */
export class SecretKeyError extends Error {
  constructor(readonly problem: string) {
    super(`secretKey ${problem}`);
    this.name = new.target.name;
  }
}

/** A key that the host's function knows, asked each time: so it may be rotated while the app runs. */
export class SecretKeyProvider implements SecretSource {
  readonly #ask: () => unknown;
  readonly #encoding: 'utf8' | 'base64';
  /** The last one that was usable: every logout asks. */
  #last: Secret | undefined;

  constructor(ask: () => unknown, encoding: 'utf8' | 'base64') {
    this.#ask = ask;
    this.#encoding = encoding;
  }

  /** @throws {SecretKeyError} when the function throws, does not answer within five seconds, or returns what is no key */
  async current(): Promise<Secret> {
    let key: unknown;
    try {
      const answer = this.#ask();
      key = typeof answer === 'string' ? answer : await timeoutOrThrow(answer, ANSWER_WITHIN_MS);
    } catch (error) {
      throw new SecretKeyError(
        `cannot be had: the function failed (${error instanceof Error ? error.name : typeof error})`,
      );
    }
    if (typeof key !== 'string')
      throw new SecretKeyError(`must be a string; the function returned ${typeof key}`);
    if (key === this.#last?.reveal()) return this.#last;
    const problem = validateSecretKey(key, this.#encoding);
    if (problem !== undefined) throw new SecretKeyError(problem);
    return (this.#last = new Secret(key));
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}
