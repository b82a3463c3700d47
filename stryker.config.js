/**
 * Mutates the verdict of nestjs-session-end, and runs the library's own specs: npm run mutation. One file:
 * npm run mutation -- --mutate libs/session-end/src/decide-end.ts
 */
const verdict = [
  ...['active-requests', 'answer-gate', 'browser-cookies', 'call-queue', 'cookie-changes'],
  ...['decide-end', 'end-reporter', 'end-tracker', 'learned-cookies', 'suspected-ends', 'watched-store'],
];

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: verdict.map((name) => `libs/session-end/src/${name}.ts`),
  testRunner: 'jest',
  testRunnerNodeArgs: ['--experimental-vm-modules', '--no-warnings=ExperimentalWarning'],
  jest: { configFile: 'libs/session-end/jest.mutation.config.js', enableFindRelatedTests: true },
  coverageAnalysis: 'perTest',
  concurrency: 2,
  timeoutMS: 20_000,
  ignorePatterns: ['dist', 'docs', 'sample-app', 'test', 'libs/*/{build,dist}', 'libs/debate-space-cli', '.git'],
  reporters: ['clear-text'],
  clearTextReporter: { allowColor: false, reportTests: false },
};
