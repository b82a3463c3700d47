import { compactVerify } from 'jose';
import type { SessionCookie } from 'nestjs-debate-space';

const key = new TextEncoder().encode(process.env.JWT_SECRET);

export const sessionCookie: SessionCookie = {
  name: 'token',
  uid: async (value) => {
    const verified = await compactVerify(value, key).catch(() => undefined); // the signature, and not `exp`
    return verified && (JSON.parse(new TextDecoder().decode(verified.payload)) as { sub?: string }).sub;
  },
};
