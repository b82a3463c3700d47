import type { BeforeErase } from 'nestjs-debate-space';
import { demoUser } from '../login/demo-users.js';

/** The app's last word on each erasure, immediately before it. A real app looks for a legal hold here, for example. */
export const keepAdministrators: BeforeErase = ({ uid }) =>
  demoUser(uid)?.role === 'administrator' ? { veto: 'administrators are not erased' } : undefined;
