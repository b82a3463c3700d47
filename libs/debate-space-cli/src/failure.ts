import type { DebateSpaceErrorCode } from 'nestjs-debate-space';

/** What the exit code of the process says. Stable: scripts go by it. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  configuration: 3,
  service: 4,
  unfinished: 5,
  faults: 6,
  vetoed: 7,
  canceled: 8,
  notFound: 9,
} as const;

type Kind = keyof typeof exitCodes;
export type ExitCode = (typeof exitCodes)[Kind];

/** For `--help`; docs/cli.md has the same. */
export const exitCodeMeanings: Readonly<Record<Kind, string>> = {
  done: 'done',
  failed:
    'failed: there is no such user, reference or logout, it was not confirmed, or a file or stdout failed',
  usage: 'the command line cannot be understood, or lacks a confirmation',
  configuration: 'a setting is missing or wrong, or the storage cannot be used',
  service: 'the service refused, or could not be reached',
  unfinished: 'unfinished: interrupted, or some users are not erased yet',
  faults: 'doctor found problems',
  vetoed: 'finished; some users are not erased, because the hook `erasure.beforeErase` vetoed it',
  canceled: 'finished; some users are not erased, because the erasure was canceled',
  notFound: 'nobody is erased: the service knows none of the users',
};

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
  readonly exitCode: ExitCode;
  readonly code: string;

  /** @param hint how to fix it */
  constructor(
    kind: Exclude<Kind, 'done'>,
    readonly problem: string,
    readonly hint?: string,
  ) {
    super(hint === undefined ? problem : `${problem}; ${hint}`);
    this.name = new.target.name;
    this.exitCode = exitCodes[kind];
    this.code = `ERR_DEBATE_SPACE_CLI_${kind.replace(/[A-Z]/g, '_$&').toUpperCase()}`;
  }
}

/** By the error's stable `code`: the plugin may be there twice, and `instanceof` would then be wrong. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof Failure) return error.exitCode;
  const isOfRequest = error instanceof Error && 'operation' in error;
  return exitCodes[kindByCode[codeOf(error) as DebateSpaceErrorCode] ?? (isOfRequest ? 'service' : 'failed')];
}

export function codeOf(error: unknown): string {
  const { code } = Object(error) as { code?: unknown };
  return typeof code === 'string' ? code : 'ERR_DEBATE_SPACE_CLI_FAILED';
}
