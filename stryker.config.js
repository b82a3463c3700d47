/**
 * Mutates the files that decide, and runs the specs beside the sources: npm run mutation. One file: npm run mutation --
 * --mutate libs/debate-space/src/session-end/possible-ends.ts
 */
const DECIDING = [
  ...['possible-ends', 'verdict', 'browser-cookies', 'cookie-sessions'].map((name) => `session-end/${name}`),
  ...['logout/delivery-policy', 'service/http/status-table', 'storage/sql-storage', 'uid-rule'],
];

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: DECIDING.map((name) => `libs/debate-space/src/${name}.ts`),
  testRunner: 'jest',
  testRunnerNodeArgs: [
    '--experimental-vm-modules',
    '--no-warnings=ExperimentalWarning',
    '--disable-warning=DEP0205',
    '--import=./scripts/typescript.mjs',
  ],
  jest: { configFile: 'jest.mutation.config.js', enableFindRelatedTests: true },
  coverageAnalysis: 'perTest',
  concurrency: 2,
  timeoutMS: 8_000,
  ignorePatterns: [
    'dist',
    'docs',
    'sample-app',
    'test/*',
    '!test/support',
    'libs/*/{build,dist}',
    'libs/debate-space-cli',
    '.git',
  ],
  reporters: ['clear-text'],
  clearTextReporter: { allowColor: false, reportTests: false },
};
