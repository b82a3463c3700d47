const BASE64 = /^(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2,3}={0,2})?$/;

/** Why this cannot be the secret key, as the rest of a sentence; `undefined` when it can. */
export function validateSecretKey(key: string, encoding: 'utf8' | 'base64'): string | undefined {
  if (key.trim() !== key || key === '') return 'must not be empty or have blanks around it';
  if (!key.isWellFormed() || /\p{Cc}/u.test(key))
    return 'must not have control characters or lone surrogates';
  if (encoding === 'base64' && !BASE64.test(key)) {
    return "is not Base64, and secretKeyEncoding is 'base64'";
  }
  return undefined;
}
