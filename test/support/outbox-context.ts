import type { OutboxContext } from 'nestjs-debate-space';
import { keyedHash } from '../../libs/debate-space/src/keyed-hash.js';
import { Sealer } from '../../libs/debate-space/src/sealer.js';
import { Secret } from '../../libs/debate-space/src/secret.js';

/** What an engine is told about an application in a test: its uids are hashed and sealed as a real one's are. */
export function outboxContext(
  more: Partial<OutboxContext> = {},
  storageKey = 'the storage key of a test',
): OutboxContext {
  const key = new Secret(storageKey);
  const uids = new Sealer(key, 'uids');
  return {
    namespace: 'app',
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
