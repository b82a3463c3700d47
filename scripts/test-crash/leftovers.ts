// What must not outlive this run: processes, folders, mounts. Put away at its end, however it comes about.
import { messageOf } from '../caught.js';

const undone = new Set<() => void>();

/**
 * @param undo must not wait for anything: it may run while the process exits
 * @returns does it now, and only once
 */
export function atExit(undo: () => void): () => void {
  const once = (): void => {
    if (!undone.delete(once)) return;
    try {
      undo();
    } catch (error) {
      console.error(`left behind: ${messageOf(error)}`);
    }
  };
  undone.add(once);
  return once;
}

process.on('exit', () => {
  for (const undo of [...undone].reverse()) undo();
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
