import Keygrip from 'keygrip';
import type { SessionCookie } from 'nestjs-debate-space';

const keygrip = new Keygrip([process.env.SESSION_SECRET ?? '']); // the `keys` of cookie-session

export const sessionCookie: SessionCookie = {
  name: 'session',
  uid: (value, { cookies }) => {
    if (!keygrip.verify(`session=${value}`, cookies['session.sig'] ?? '')) return undefined;
    return (JSON.parse(Buffer.from(value, 'base64').toString()) as { user?: string }).user;
  },
};
