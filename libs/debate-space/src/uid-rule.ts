/** A value that cannot be a uid. */
export class RefusedUid {
  /** @param problem the end of a sentence about the uid; it never repeats the value */
  constructor(readonly problem: string) {}
}

/** Characters as JavaScript's `length` counts them: UTF-16 code units. */
export const MAX_UID_LENGTH = 1_024;
const TOO_LONG = new RefusedUid('is longer than 1,024 characters');
/** Of JSON in which a host keeps its user. */
const MAX_JSON_LENGTH = 64 * 1_024;

const NO_VALUE = 'is the text of a missing value or of an object, such as undefined or [object Object]';
/** The texts that JavaScript and JSON write for a missing value. Exactly so: people are called Null and True. */
const NO_VALUES: ReadonlySet<string> = new Set(['undefined', 'null', 'NaN', 'true', 'false']);
/** What JSON text is, by its first character. */
const JSON_KINDS: Readonly<Record<string, string>> = {
  '{': 'object',
  '[': 'array',
  '"': 'string, with its quotes',
};
/** `[object Object]`, also with a prefix, and the source of a function that was not called. */
const OBJECT_OR_FUNCTION =
  /\[object \w+\]|^(?:async )?(?:function\b\*? ?)?[\w$]*\([^()]*\) ?(?:=>|\{)|^(?:async )?[\w$]+ => /;
/** JSON with a prefix, cut off or URL-encoded, and what `util.inspect` prints. `{GUID}` and `[Team] Ann` do not match. */
const PART_OF_RECORD =
  /\{\s*\\*["']|^\s*\[\s*\\*["']|^[\s[]*\{\s*[\w$.-]+\s*[:=]|%(?:7b|5b)(?:%20|\+)*%(?:22|7b)/i;
/** Most uids. None of the checks for single characters is needed. */
const PLAIN = /^[\w@+|:=-][\w@+|:=.-]*$/;

/**
 * A uid that the host names, in a call or a list: text, a number or an ObjectId. An object, or JSON of one, is refused:
 * which of its fields is meant would be a guess, and an erasure cannot be undone.
 */
export function namedUid(value: unknown): string | RefusedUid {
  const uid = ownUid(value);
  if (uid !== undefined) return uid;
  if (value === '') return new RefusedUid('is empty');
  if (typeof value === 'number') return new RefusedUid('is not a finite number');
  return new RefusedUid(`must be a string and is ${value === null ? 'null' : `of type ${typeof value}`}`);
}

/**
 * The uid in what the host keeps as its user: the value itself, or the first of `uid`, `id`, `sub`, `userId` and `_id`
 * that is given. JSON text of an object or a string is read as what it was made of.
 * @returns `undefined` when there is no user, or no uid is found in it
 */
export function foundUid(user: unknown): string | RefusedUid | undefined {
  if (user === undefined || user === null) return undefined; // most of the places where a session may have its user
  if (user instanceof RefusedUid) return user;
  if (typeof user === 'string' && user.length > MAX_JSON_LENGTH) return TOO_LONG;
  const json = typeof user === 'string' ? jsonIn(user) : undefined;
  if (json !== undefined) return foundUid(json);
  const own = ownUid(user);
  if (own !== undefined || typeof user !== 'object') return own;
  const { uid, id, sub, userId, _id } = user as Record<string, unknown>;
  return ownUid(uid) ?? ownUid(id) ?? ownUid(sub) ?? ownUid(userId) ?? ownUid(_id);
}

/** Whether a proxy that decodes `%2F` could fold the text into another path. */
export function hasDotSegment(text: string): boolean {
  return text.split(/[/\\]/).some((segment) => segment === '.' || segment === '..');
}

/** @returns `undefined` for a value that cannot name a user, such as `Number(undefined)` of a session without a user */
function ownUid(value: unknown): string | RefusedUid | undefined {
  if (typeof value === 'string') return value === '' ? undefined : (refusalOf(value) ?? value);
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return String(value);
  if (Number.isInteger(value))
    return new RefusedUid('is a number beyond 2^53 - 1, which JavaScript rounds: give it as text');
  if (Number.isFinite(value)) return new RefusedUid('is a number with a fraction: give it as text');
  if (typeof value !== 'object' || value === null) return undefined;
  // MongoDB's ObjectId, of whichever version of its driver; a store that keeps BSON gives it back.
  const { toHexString } = value as { toHexString?: unknown };
  const hex: unknown = typeof toHexString === 'function' ? Reflect.apply(toHexString, value, []) : undefined;
  return typeof hex === 'string' ? ownUid(hex) : undefined;
}

/** Decides most texts by their first character and `PLAIN`: this runs for each session that is loaded or saved. */
function refusalOf(text: string): RefusedUid | undefined {
  if (text.length > MAX_UID_LENGTH) return TOO_LONG; // first: the cost of every other check is bounded by it
  if (isTokenOrBase64(text)) return new RefusedUid('is a token such as a JWT, or JSON in Base64');
  if (PLAIN.test(text)) return NO_VALUES.has(text) ? new RefusedUid(NO_VALUE) : undefined;
  const trimmed = text.trim();
  if (NO_VALUES.has(trimmed) || OBJECT_OR_FUNCTION.test(text)) return new RefusedUid(NO_VALUE);
  const kind = JSON_KINDS[trimmed.charAt(0)];
  if (kind !== undefined && parsed(trimmed) !== undefined)
    return new RefusedUid(`is the text of a JSON ${kind}`);
  if (PART_OF_RECORD.test(text)) return new RefusedUid('has a record or a part of one in it');
  // URL parsers fold `.` and `..` away, encoded or not: `DELETE /users/..` would be another resource. Inside a uid, some
  // proxies decode and fold them, too: `a%2F..%2Fb`.
  if (hasDotSegment(text)) return new RefusedUid('has a dot segment');
  if (/\p{Cc}/u.test(text)) return new RefusedUid('has control characters');
  return text.isWellFormed() ? undefined : new RefusedUid('has a lone surrogate');
}

/** The value of JSON text that is an object or a string. */
function jsonIn(text: string): unknown {
  const first = text.charCodeAt(0);
  if (first > 0x22 && first < 0x7b) return undefined; // neither a quote, a brace nor a blank
  const trimmed = text.trim();
  return trimmed.startsWith('{') || trimmed.startsWith('"') ? parsed(trimmed) : undefined;
}

/**
 * A JWS or JWE (RFC 7515, 7516) begins with the Base64 of a JSON object; so do other tokens and cookies. The quote: `e30`
 * and `W10`, which may well be uids, are the Base64 of `{}` and `[]`.
 */
function isTokenOrBase64(text: string): boolean {
  // `{` and a quote or a blank, `[` and one of these, a bracket or a digit: nothing that is hexadecimal.
  if (!/^(?:[Bb]earer )?(?:e[wy]|W[wyz13])/.test(text)) return false;
  const [part = ''] = text.slice(text.indexOf(' ') + 1).split('.', 1);
  const decoded = Buffer.from(part, 'base64').toString().trim();
  return /^[{[]/.test(decoded) && decoded.includes('"') && typeof parsed(decoded) === 'object';
}

/** `undefined` when the text is not JSON. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined; // the error would quote it
  }
}
