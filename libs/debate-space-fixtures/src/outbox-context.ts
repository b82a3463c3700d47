import { uidCipher } from '../../debate-space/src/secrets/uid-cipher.js';
import type { LogoutContext } from '../../debate-space/src/logout/logout.js';
import { Secret } from '../../debate-space/src/secrets/secret.js';

/** What a queue is told about an application in a test: its uids are hashed and sealed as a real one's are. */
export function outboxContext(
  more: Partial<LogoutContext> = {},
  storageKey = 'the storage key of a test',
): LogoutContext {
  const key = new Secret(storageKey);
  return {
    uids: uidCipher([key], 'test'),
    keepFinishedMs: 60_000,
    ...more,
  };
}
