/** No real service takes them. */
export const keys = {
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
};

/** Of the host's sessions. */
export const sessionSecret = 'only for benchmarks, and long enough for it';
