import { unsealData } from 'iron-session';
import type { SessionCookie } from 'nestjs-debate-space';

const password = process.env.SESSION_SECRET ?? '';

export const sessionCookie: SessionCookie = {
  name: 'session',
  uid: async (value) => (await unsealData<{ user?: string }>(value, { password })).user,
};
