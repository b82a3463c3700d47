import { setImmediate as nextTurn } from 'node:timers/promises';
import { originalProcess } from './original-process.js';

/** The names of the warnings that Node emits meanwhile, such as `MaxListenersExceededWarning`. */
export async function warningsDuring(work: () => unknown): Promise<readonly string[]> {
  const original = originalProcess();
  const names: string[] = [];
  const note = ({ name }: Error): unknown => names.push(name);
  original.on('warning', note);
  try {
    await work();
    await nextTurn();
    return names.filter((name) => name !== 'ExperimentalWarning');
  } finally {
    original.off('warning', note);
  }
}
