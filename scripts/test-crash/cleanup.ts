import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Processes, folders and mounts that must not outlive a run, however the run ends. */
export class Cleanup {
  readonly #tasks: (() => void)[] = [];

  constructor() {
    process.once('exit', () => {
      for (const task of this.#tasks.reverse()) task();
    });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
  }

  /** @param task runs while the process exits, so it must not wait for anything, nor throw */
  add(task: () => void): void {
    this.#tasks.push(task);
  }

  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'debate-space-crash-'));
    this.add(() => {
      rmSync(folder, { recursive: true, force: true });
    });
    return folder;
  }

  /** A folder on a disk that is small enough to be filled. */
  smallDisk(): string {
    const folder = this.folder();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', folder]);
    this.add(() => execFileSync('umount', ['--lazy', folder]));
    return folder;
  }
}
