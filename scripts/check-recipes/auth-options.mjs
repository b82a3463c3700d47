import { memoryAdapter } from 'better-auth/adapters/memory';

export const database = { user: [], session: [], account: [], verification: [] };

export const options = {
  database: memoryAdapter(database),
  secret: 'only for tests, and long enough for better-auth',
  emailAndPassword: { enabled: true },
  user: { deleteUser: { enabled: true } },
};
