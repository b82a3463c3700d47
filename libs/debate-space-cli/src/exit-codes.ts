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
