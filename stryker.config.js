/**
 * Mutates what decides in one library, and runs the library's own specs: LIBRARY=durable-jobs npm run mutation, by default
 * session-end. One file: npm run mutation -- --mutate libs/session-end/src/decide-end.ts
 */
const DECIDING = {
  'session-end': [
    ...['active-requests', 'answer-gate', 'browser-cookies', 'call-queue', 'cookie-changes', 'decide-end'],
    ...['end-reporter', 'end-tracker', 'learned-cookies', 'suspected-ends', 'watched-store'],
  ],
  'durable-jobs': ['job-store', 'job-claims', 'held-jobs', 'due-jobs', 'job-lane'],
  'debate-space': [
    ...['logout/delivery/delivery-policy', 'erasure/execution/erasure-attempt'],
    ...['erasure/execution/erasure-execution', 'service/rate-limiter'],
  ],
};
const library = process.env.LIBRARY ?? 'session-end';

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: DECIDING[library].map((name) => `libs/${library}/src/${name}.ts`),
  testRunner: 'jest',
  testRunnerNodeArgs: ['--experimental-vm-modules', '--no-warnings=ExperimentalWarning'],
  jest: { configFile: 'jest.mutation.config.js', enableFindRelatedTests: true },
  coverageAnalysis: 'perTest',
  concurrency: 2,
  timeoutMS: 8_000,
  ignorePatterns: [
    'dist',
    'docs',
    'sample-app',
    'test',
    'libs/*/{build,dist}',
    'libs/debate-space-cli',
    '.git',
  ],
  reporters: ['clear-text'],
  clearTextReporter: { allowColor: false, reportTests: false },
};
