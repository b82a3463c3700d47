import type { DebateSpaceErrorCode } from 'nestjs-debate-space';

/** How a command may end: the exit code of the process, and its meaning. Stable: scripts go by it. */
export const endings = {
  done: [0, 'done'],
  failed: [
    1,
    'failed: the user, reference or logout is not found, it was not confirmed, or a file or stdout failed',
  ],
  usage: [2, 'the command line cannot be understood, or lacks a confirmation'],
  configuration: [3, 'a setting is missing or wrong, or the storage cannot be used'],
  service: [4, 'the service refused, or could not be reached'],
  unfinished: [5, 'unfinished: interrupted, or some users are not erased yet'],
  problems: [6, 'doctor found problems'],
  vetoed: [7, 'finished; some users are not erased, because the hook `erasure.beforeErase` vetoed it'],
  canceled: [8, 'finished; some users are not erased, because the erasure was canceled'],
  notFound: [9, 'no user is erased, because none is found'],
} as const;
type Kind = keyof typeof endings;

const kindByCode: Partial<Record<DebateSpaceErrorCode, Kind>> = {
  ERR_DEBATE_SPACE_OPTIONS: 'configuration',
  ERR_DEBATE_SPACE_STORAGE: 'configuration',
  ERR_DEBATE_SPACE_INVALID_UID: 'usage',
  ERR_DEBATE_SPACE_INVALID_ARGUMENT: 'usage',
  ERR_DEBATE_SPACE_NO_ACCOUNTS: 'usage',
  ERR_DEBATE_SPACE_ABORTED: 'unfinished',
};

/** Ends a command with another exit code than 0. The message is for people: the problem, and the hint if there is one. */
export class Failure extends Error {
  readonly exitCode: number;
  readonly code: string;

  /** @param hint how to fix it */
  constructor(
    kind: Exclude<Kind, 'done'>,
    readonly problem: string,
    readonly hint?: string,
  ) {
    super(hint === undefined ? problem : `${problem}; ${hint}`);
    this.name = new.target.name;
    this.exitCode = endings[kind][0];
    this.code = `ERR_DEBATE_SPACE_CLI_${kind.replace(/[A-Z]/g, '_$&').toUpperCase()}`;
  }
}

/** By the error's stable `code`: the plugin may be there twice, and `instanceof` would then be wrong. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Failure) return error.exitCode;
  const isOfRequest = error instanceof Error && 'operation' in error;
  return endings[
    kindByCode[codeOf(error) as DebateSpaceErrorCode] ?? (isOfRequest ? 'service' : 'failed')
  ][0];
}

export function codeOf(error: unknown): string {
  const { code } = Object(error) as { code?: unknown };
  return typeof code === 'string' ? code : 'ERR_DEBATE_SPACE_CLI_FAILED';
}
