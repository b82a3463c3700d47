import { inspect } from 'node:util';
import { timeoutOrThrow } from '../async/with-timeout.js';
import { Secret, type SecretSource, validateSecretKey } from './secret.js';

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

  constructor(ask: () => unknown, encoding: 'utf8' | 'base64') {
    this.#ask = ask;
    this.#encoding = encoding;
  }

  /** @throws {SecretKeyError} when the function throws, does not answer within five seconds, or returns what is no key */
  async current(): Promise<Secret> {
    let key: unknown;
    try {
      key = await timeoutOrThrow(Promise.resolve(this.#ask()), ANSWER_WITHIN_MS);
    } catch (error) {
      throw new SecretKeyError(
        `cannot be had: the function failed (${error instanceof Error ? error.name : typeof error})`,
      );
    }
    if (typeof key !== 'string')
      throw new SecretKeyError(`must be a string; the function returned ${typeof key}`);
    const problem = validateSecretKey(key, this.#encoding);
    if (problem !== undefined) throw new SecretKeyError(problem);
    return new Secret(key);
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}
