import type { Emit } from '../debate-space-event.js';
import type { Outbox } from '../logout/logout.js';

/**
 * Gives up what the outbox still has of a user who is erased: the service could only refuse it, and the uid would stay.
 * Never rejects: the erasure itself is done.
 */
export async function forgetUser(outbox: Outbox, uid: string, emit: Emit): Promise<void> {
  try {
    await outbox.supersede(uid, Date.now());
    const { waiting } = await outbox.ofUser(uid);
    for (const { entry, state } of waiting) if (state === 'parked') await outbox.discard(entry.id);
  } catch (error) {
    const name = error instanceof Error ? error.name : typeof error;
    emit({ type: 'fault', where: 'logouts of an erased user', error: name });
  }
}
