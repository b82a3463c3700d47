import { InvalidUidError, type DebateSpaceOperation } from './errors.js';

/** A value that is refused as a uid. */
export class RefusedUid {
  /** @param problem the predicate of “the uid …”, such as `is empty`; it never repeats the value */
  constructor(readonly problem: string) {}
}

/** Characters as JavaScript's `length` counts them: UTF-16 code units. */
export const MAX_UID_LENGTH = 1_024;
const TOO_LONG = new RefusedUid('is longer than 1,024 characters');
/** The longest JSON of a user that is parsed. */
const MAX_JSON_LENGTH = 64 * 1_024;

const NO_VALUE = 'is the text of a missing value or of an object, such as undefined or [object Object]';
/** The texts that JavaScript and JSON write for a missing value. Case counts: people are called Null and True. */
const NO_VALUES: ReadonlySet<string> = new Set(['undefined', 'null', 'NaN', 'true', 'false']);
/** The type of a JSON text by its first character. */
const JSON_KINDS: Readonly<Record<string, string>> = {
  '{': 'object',
  '[': 'array',
  '"': 'string, with its quotes',
};
/** `[object Object]`, also with a prefix, and the source of a function that the host forgot to call. */
const OBJECT_OR_FUNCTION =
  /\[object \w+\]|^(?:async )?(?:function\b\*? ?)?[\w$]*\([^()]*\) ?(?:=>|\{)|^(?:async )?[\w$]+ => /;
/** JSON with a prefix, cut off or URL-encoded, and the output of `util.inspect`. `{GUID}` and `[Team] Ann` do not match. */
const PART_OF_RECORD =
  /\{\s*\\*["']|^\s*\[\s*\\*["']|^[\s[]*\{\s*[\w$.-]+\s*[:=]|%(?:7b|5b)(?:%20|\+)*%(?:22|7b)/i;
/** Most uids match this, and then skip the checks of single characters. */
const PLAIN = /^[\w@+|:=-][\w@+|:=.-]*$/;

/**
 * Reads a uid that the host names, in a call or a list: text, a number or an ObjectId. Refuses an object, or JSON of one:
 * an erasure cannot be undone, and choosing one of its fields would be a guess.
 */
export function namedUid(value: unknown): string | RefusedUid {
  const uid = ownUid(value);
  if (uid !== undefined) return uid;
  if (value === '') return new RefusedUid('is empty');
  if (typeof value === 'number') return new RefusedUid('is not a finite number');
  return new RefusedUid(`must be a string and is ${value === null ? 'null' : `of type ${typeof value}`}`);
}

/**
 * Finds the uid in the value that a session or a call has for its user: the value itself, or the first of `uid`, `id`,
 * `sub`, `userId` and `_id` that has a value. JSON text of an object or a string is parsed first.
 * @returns `undefined` when there is no user, or when the user has no uid
 */
export function foundUid(user: unknown): string | RefusedUid | undefined {
  if (user === undefined || user === null) return undefined; // the usual case: a session has its user in one of several places
  if (user instanceof RefusedUid) return user;
  if (typeof user === 'string' && user.length > MAX_JSON_LENGTH) return TOO_LONG;
  const json = typeof user === 'string' ? jsonIn(user) : undefined;
  if (json !== undefined) return foundUid(json);
  const own = ownUid(user);
  if (own !== undefined || typeof user !== 'object') return own;
  const { uid, id, sub, userId, _id } = user as Record<string, unknown>;
  return ownUid(uid) ?? ownUid(id) ?? ownUid(sub) ?? ownUid(userId) ?? ownUid(_id);
}

/**
 * The uid for a request to the service.
 * @param uid the result of `namedUid` or `foundUid`
 * @throws {@link InvalidUidError}
 */
export function acceptedUid(uid: string | RefusedUid, operation: DebateSpaceOperation): string {
  if (typeof uid === 'string') return uid;
  const message = `the uid ${uid.problem}; give the uid under which the user was registered in the service`;
  throw new InvalidUidError(message, { operation, outcome: 'not-sent', attempts: 0 });
}

/** Whether the text has the segment `.` or `..`, which a proxy that decodes `%2F` could fold into another path. */
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
  // MongoDB's ObjectId, of any version of its driver: stores that keep BSON return it.
  const { toHexString } = value as { toHexString?: unknown };
  const hex: unknown = typeof toHexString === 'function' ? Reflect.apply(toHexString, value, []) : undefined;
  return typeof hex === 'string' ? ownUid(hex) : undefined;
}

/** Decides most texts by their first character and `PLAIN`, because it runs for each session that is loaded or saved. */
function refusalOf(text: string): RefusedUid | undefined {
  if (text.length > MAX_UID_LENGTH) return TOO_LONG; // first, because it bounds the cost of all other checks
  if (isTokenOrBase64(text)) return new RefusedUid('is a token such as a JWT, or JSON in Base64');
  if (PLAIN.test(text)) return NO_VALUES.has(text) ? new RefusedUid(NO_VALUE) : undefined;
  const trimmed = text.trim();
  if (NO_VALUES.has(trimmed) || OBJECT_OR_FUNCTION.test(text)) return new RefusedUid(NO_VALUE);
  const kind = JSON_KINDS[trimmed.charAt(0)];
  if (kind !== undefined && parsed(trimmed) !== undefined)
    return new RefusedUid(`is the text of a JSON ${kind}`);
  if (PART_OF_RECORD.test(text)) return new RefusedUid('contains a record or a part of one');
  // URL parsers fold `.` and `..` away, encoded or not: `DELETE /users/..` would be another resource. Inside a uid, some
  // proxies decode and fold them, too: `a%2F..%2Fb`.
  if (hasDotSegment(text)) return new RefusedUid('has a dot segment');
  if (/\p{Cc}/u.test(text)) return new RefusedUid('has control characters');
  return text.isWellFormed() ? undefined : new RefusedUid('has a lone surrogate');
}

/** The parsed value of JSON text that is an object or a string. */
function jsonIn(text: string): unknown {
  const first = text.charCodeAt(0);
  if (first > 0x22 && first < 0x7b) return undefined; // neither a quote, a brace nor a blank
  const trimmed = text.trim();
  return trimmed.startsWith('{') || trimmed.startsWith('"') ? parsed(trimmed) : undefined;
}

/**
 * A JWS or JWE (RFC 7515, 7516), like other tokens and cookies, begins with the Base64 of a JSON object. A quote is required,
 * because `e30` and `W10`, the Base64 of `{}` and `[]`, may well be uids.
 */
function isTokenOrBase64(text: string): boolean {
  // The Base64 of `{` before a quote or a blank, and of `[` before these, a bracket or a digit. Hexadecimal texts do not match.
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
