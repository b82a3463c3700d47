/**
 * Mutates what decides in one library, and runs the library's own specs: LIBRARY=durable-jobs npm run mutation, by default
 * debate-space. One file: npm run mutation -- --mutate libs/debate-space/src/session-end/possible-ends.ts
 */
const DECIDING = {
  'durable-jobs': ['job-store', 'job-claims', 'held-jobs', 'due-jobs', 'job-lane'],
  'debate-space': [
    ...['possible-ends', 'watched-store', 'answer-gate'].map((name) => `session-end/${name}`),
    ...['logout/delivery/delivery-policy', 'erasure/execution/erasure-attempt'],
    ...['erasure/execution/erasure-execution', 'service/rate-limiter'],
  ],
};
const library = process.env.LIBRARY ?? 'debate-space';

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
