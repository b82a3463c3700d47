import { csrfSync } from 'csrf-sync';

/**
 * Synchroniser tokens: one per session, repeated in a hidden field of each form. Passport renews the session on login
 * and on logout, and the token with it.
 */
export const csrf = csrfSync({
  getTokenFromRequest: ({ body }) => {
    const token = (body as { _csrf?: unknown } | undefined)?._csrf;
    return typeof token === 'string' ? token : undefined;
  },
});
