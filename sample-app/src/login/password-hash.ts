import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

/** Parameters of scrypt, with N = 2^ln. */
interface Cost {
  readonly ln: number;
  readonly r: number;
  readonly p: number;
}

/** OWASP's recommendation for 32 MiB of memory. */
const COST: Cost = { ln: 15, r: 8, p: 3 };
const SALT_BYTES = 16;
const KEY_BYTES = 32;
/** `scrypt.<ln>.<r>.<p>.<salt>.<key>`, base64url: nothing in it is special to shells, `.env` files or Compose. */
const FORMAT = /^scrypt\.(1\d|20)\.([1-9]|1\d)\.([1-9])\.([\w-]{22})\.([\w-]{43})$/;

export async function hashPassword(password: string, { ln, r, p }: Cost = COST): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const key = await derive(password, salt, { ln, r, p });
  return ['scrypt', ln, r, p, salt.toString('base64url'), key.toString('base64url')].join('.');
}

export function isPasswordHash(text: string): boolean {
  return FORMAT.test(text);
}

/** Compares in constant time. @throws {TypeError} when `hash` is none */
export async function isPasswordOf(hash: string, password: string): Promise<boolean> {
  const [, ln, r, p, salt, key] = FORMAT.exec(hash) ?? [];
  if (salt === undefined || key === undefined) throw new TypeError('This is not a password hash.');
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) };
  const derived = await derive(password, Buffer.from(salt, 'base64url'), cost);
  return timingSafeEqual(derived, Buffer.from(key, 'base64url'));
}

function derive(password: string, salt: Buffer, { ln, r, p }: Cost): Promise<Buffer> {
  const N = 2 ** ln;
  const options = { N, r, p, maxmem: 256 * N * r }; // Node's default is just too little for COST
  return new Promise((resolve, reject) => {
    scrypt(password.normalize(), salt, KEY_BYTES, options, (error, key) => {
      if (error) reject(error);
      else resolve(key);
    });
  });
}
