import { createHmac, timingSafeEqual } from 'node:crypto';

/** JWS algorithms over a shared secret (RFC 7518, section 3.2). */
export type HmacAlgorithm = 'HS256' | 'HS384' | 'HS512';

const digests: Readonly<Record<HmacAlgorithm, string>> = {
  HS256: 'sha256',
  HS384: 'sha384',
  HS512: 'sha512',
};

/** Whether `signature` is the HMAC of `signingInput`; compared in constant time. */
export function isSignedWith(
  key: Buffer,
  algorithm: HmacAlgorithm,
  signingInput: string,
  signature: Buffer,
): boolean {
  const expected = createHmac(digests[algorithm], key).update(signingInput).digest();
  return expected.length === signature.length && timingSafeEqual(expected, signature);
}
