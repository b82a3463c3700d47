import { byStore } from './express-endings/by-store.js';
import { destroyed } from './express-endings/destroyed.js';
import type { ExpressEnding } from './express-endings/ending.js';
import { expiry } from './express-endings/expiry.js';
import { leftBehind } from './express-endings/left-behind.js';
import { lookAlikes } from './express-endings/look-alikes.js';
import { requestPhases } from './express-endings/request-phases.js';
import { userChanges } from './express-endings/user-changes.js';

/** The Express table of session-endings.md. */
export const expressEndings: readonly ExpressEnding[] = [
  ...destroyed,
  ...userChanges,
  ...leftBehind,
  ...requestPhases,
  ...byStore,
  ...expiry,
  ...lookAlikes,
];
