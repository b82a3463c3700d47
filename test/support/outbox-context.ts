import { keyedHash } from '../../libs/debate-space/src/keyed-hash.js';
import type { OutboxContext } from '../../libs/debate-space/src/outbox/outbox.js';
import { Sealer } from '../../libs/debate-space/src/sealer.js';
import { Secret } from '../../libs/debate-space/src/secret.js';

/** What a queue is told about an application in a test: its uids are hashed and sealed as a real one's are. */
export function outboxContext(
  more: Partial<OutboxContext> = {},
  storageKey = 'the storage key of a test',
): OutboxContext {
  const key = new Secret(storageKey);
  const uids = new Sealer(key, 'uids');
  return {
    uidHash: (uid) => keyedHash(key, 'uid', uid),
    seal: (uid) => uids.seal(uid),
    unseal: (sealed) => uids.open(sealed),
    contained: (work) => {
      work();
    },
    keepFinishedMs: 60_000,
    ...more,
  };
}
