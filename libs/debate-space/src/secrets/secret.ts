import { inspect } from 'node:util';
import { timeoutOrThrow } from '../async/with-timeout.js';

/** The secret key as it is at this moment. */
export interface SecretSource {
  current(): Promise<Secret>;
}

/** A value that cannot be printed: `util.inspect`, `String()` and `JSON.stringify` show `[secret]`. */
export class Secret implements SecretSource {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
    Object.freeze(this);
  }

  /** The value. Call it where the value is sent or imported, and never keep the result in a property. */
  reveal(): string {
    return this.#value;
  }

  /** Always the same key. */
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

/** Why a text cannot be sent unchanged, as the rest of a sentence; `undefined` when it can. */
export function textProblem(text: string): string | undefined {
  if (text.trim() !== text || text === '') return 'must not be empty or have blanks around it';
  return text.isWellFormed() && !/\p{Cc}/u.test(text)
    ? undefined
    : 'must not have control characters or lone surrogates';
}

/** Why a text cannot be the secret key, as the rest of a sentence; `undefined` when it can. */
export function validateSecretKey(key: string, encoding: 'utf8' | 'base64'): string | undefined {
  const isBase64 = encoding === 'utf8' || BASE64.test(key);
  return textProblem(key) ?? (isBase64 ? undefined : "is not Base64, and secretKeyEncoding is 'base64'");
}

const FUNCTION_TIMEOUT_MS = 5_000;

/** The host's function gave no usable secret key. The message says why, and never shows what the function returned. */
export class SecretKeyError extends Error {
  constructor(readonly problem: string) {
    super(`secretKey ${problem}`);
    this.name = new.target.name;
  }
}

/** Calls the host's function for each use of the key, so that the key can be rotated while the app runs. */
export class SecretKeyProvider implements SecretSource {
  readonly #read: () => unknown;
  readonly #encoding: 'utf8' | 'base64';
  /** The last usable key: not checked again for each logout. */
  #last: Secret | undefined;

  constructor(read: () => unknown, encoding: 'utf8' | 'base64') {
    this.#read = read;
    this.#encoding = encoding;
  }

  /** @throws {SecretKeyError} when the function throws, takes more than five seconds, or returns something else than a key */
  async current(): Promise<Secret> {
    let key: unknown;
    try {
      const answer = this.#read();
      key = typeof answer === 'string' ? answer : await timeoutOrThrow(answer, FUNCTION_TIMEOUT_MS);
    } catch (error) {
      throw new SecretKeyError(
        `is unknown: the function failed (${error instanceof Error ? error.name : typeof error})`,
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
