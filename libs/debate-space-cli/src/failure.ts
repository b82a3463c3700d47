import type { DebateSpaceErrorCode } from 'nestjs-debate-space';
import { textInVariables, variables } from './variables.js';

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

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Each with its meaning, for `--help` and the documentation. */
export const exitCodeMeanings: readonly (readonly [ExitCode, string])[] = [
  [exitCodes.done, 'done'],
  [
    exitCodes.failed,
    'failed: there is no such user, reference or logout, it was not confirmed, or a file or stdout failed',
  ],
  [exitCodes.usage, 'the command line cannot be understood, or lacks a confirmation'],
  [exitCodes.configuration, 'a setting is missing or wrong, or the storage cannot be used'],
  [exitCodes.service, 'the service refused, or could not be reached'],
  [exitCodes.unfinished, 'unfinished: interrupted, or some users are not erased yet'],
  [exitCodes.faults, 'doctor found problems'],
  [exitCodes.vetoed, 'finished; some users are not erased, because the hook `erasure.beforeErase` vetoed it'],
  [exitCodes.canceled, 'finished; some users are not erased, because the erasure was canceled'],
  [exitCodes.notFound, 'nobody is erased: the service knows none of the users'],
];

/** A command that ends with another exit code than 0. The message is for people: the problem, and the hint if there is one. */
export class Failure extends Error {
  readonly exitCode: ExitCode;
  readonly code: string;

  /** @param hint how to fix it */
  constructor(
    kind: Exclude<keyof typeof exitCodes, 'done'>,
    readonly problem: string,
    readonly hint?: string,
  ) {
    super(hint === undefined ? problem : `${problem}; ${hint}`);
    this.name = new.target.name;
    this.exitCode = exitCodes[kind];
    this.code = `ERR_DEBATE_SPACE_CLI_${kind.replace(/[A-Z]/g, '_$&').toUpperCase()}`;
  }
}

const exitCodeByError: Partial<Record<DebateSpaceErrorCode, ExitCode>> = {
  ERR_DEBATE_SPACE_OPTIONS: exitCodes.configuration,
  ERR_DEBATE_SPACE_STORAGE: exitCodes.configuration,
  ERR_DEBATE_SPACE_INVALID_UID: exitCodes.usage,
  ERR_DEBATE_SPACE_INVALID_ARGUMENT: exitCodes.usage,
  ERR_DEBATE_SPACE_NO_ACCOUNTS: exitCodes.usage,
  ERR_DEBATE_SPACE_ABORTED: exitCodes.unfinished,
  ERR_DEBATE_SPACE_AUTHENTICATION: exitCodes.service,
  ERR_DEBATE_SPACE_PERMISSION: exitCodes.service,
  ERR_DEBATE_SPACE_RATE_LIMITED: exitCodes.service,
  ERR_DEBATE_SPACE_REFUSED: exitCodes.service,
  ERR_DEBATE_SPACE_UNAVAILABLE: exitCodes.service,
  ERR_DEBATE_SPACE_NETWORK: exitCodes.service,
  ERR_DEBATE_SPACE_TIMEOUT: exitCodes.service,
  ERR_DEBATE_SPACE_UNEXPECTED_RESPONSE: exitCodes.service,
  ERR_DEBATE_SPACE_PAGE_LIMIT: exitCodes.service,
};

/** By the error's stable `code`: the plugin may be there twice, and `instanceof` would then be wrong. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof Failure) return error.exitCode;
  return exitCodeByError[codeOf(error) as DebateSpaceErrorCode] ?? exitCodes.failed;
}

export function codeOf(error: unknown): string {
  const { code } = Object(error) as { code?: unknown };
  return typeof code === 'string' ? code : 'ERR_DEBATE_SPACE_CLI_FAILED';
}

const messageByCode: Partial<Record<DebateSpaceErrorCode, string>> = {
  ERR_DEBATE_SPACE_NO_ACCOUNTS:
    'None of the first users is in the list of accounts, so every user would be an orphan. ' +
    'Check the file and its --column; if there really is no account, add --allow-no-match.',
  ERR_DEBATE_SPACE_UNKNOWN_ERASURE: 'There is no erasure of this reference; see: debate-space erasures list',
};

/** In words of the command line: variables in place of options, and no method of the plugin. */
export function messageOf(error: unknown): string {
  const code = codeOf(error) as DebateSpaceErrorCode;
  const own = messageByCode[code];
  if (own !== undefined) return own;
  if (!(error instanceof Error)) return String(error);
  if (error instanceof Failure) return error.message;
  const { operation, host = 'the debate space' } = error as {
    readonly operation?: string;
    readonly host?: string;
  };
  const message = operation === undefined ? error.message : error.message.replace(`${operation}: `, '');
  const [, reason] = code === 'ERR_DEBATE_SPACE_NETWORK' ? (/\((\w+)\)/.exec(message) ?? []) : [];
  if (reason !== undefined)
    return `Cannot reach ${host} (${reason}). Check ${variables.authUrl}, or run: debate-space doctor`;
  return textInVariables(message);
}
