import { memoryAdapter } from 'better-auth/adapters/memory';

interface Session {
  expiresAt: Date;
}

export const database = {
  user: [] as { readonly id: string }[],
  session: [] as Session[],
  account: [] as unknown[],
  verification: [] as unknown[],
};

export const options = {
  database: memoryAdapter(database),
  secret: 'only for tests, and long enough for better-auth',
  emailAndPassword: { enabled: true },
  user: { deleteUser: { enabled: true } },
};
