import type { Readable, Writable } from 'node:stream';

/** What the command line needs of its process. */
export interface CliIo {
  readonly env: NodeJS.ProcessEnv;
  /** Where `.env` is looked for, and what relative paths start from. */
  readonly folder: string;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  /** Aborted by Ctrl-C, and when the process is asked to end. */
  readonly interrupted: AbortSignal;
}
