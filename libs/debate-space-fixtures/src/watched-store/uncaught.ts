import { setImmediate as nextTurn } from 'node:timers/promises';
import { originalProcess } from '../original-process.js';

const MESSAGE = 'thrown by a callback';

/** Where an error goes that a callback throws: to the caller, into a promise, or to the process, which would end. */
export async function throwingCallback(
  work: (callback: () => never) => unknown,
  settled: () => Promise<unknown>,
): Promise<readonly string[]> {
  const seen: string[] = [];
  const note = (where: string) => (error: unknown) => seen.push(`${where}: ${String(error)}`);
  // Jest has listeners of its own, and fails the test.
  const original = originalProcess();
  const listeners = original.listeners('unhandledRejection');
  original.removeAllListeners('unhandledRejection').on('unhandledRejection', note('unhandled'));
  original.setUncaughtExceptionCaptureCallback(note('uncaught'));
  try {
    await new Promise<void>((resolve) => {
      try {
        const returned = work(() => {
          seen.push('called');
          resolve();
          throw new Error(MESSAGE);
        });
        Promise.resolve(returned).catch(note('rejected'));
      } catch (error) {
        note('thrown')(error);
      }
    });
    await settled(); // what comes late, or twice, has come by then
    await nextTurn();
    return seen;
  } finally {
    original.setUncaughtExceptionCaptureCallback(null);
    original.removeAllListeners('unhandledRejection');
    for (const listener of listeners) original.on('unhandledRejection', listener);
  }
}
