export const SECRET = 'only for tests, and long enough for each of them';

// Recipes of docs/examples read it when they are imported, after this file.
Object.assign(process.env, { SESSION_SECRET: SECRET, JWT_SECRET: SECRET });
