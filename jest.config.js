const sources = {
  '^(\\.{1,2}/.*)\\.js$': '$1',
  '^nestjs-debate-space$': '<rootDir>/libs/debate-space/src/index.ts',
  '^nestjs-debate-space/(.*)$': '<rootDir>/libs/debate-space/src/$1.ts',
  '^debate-space-simulator$': '<rootDir>/libs/debate-space-simulator/src/index.ts',
  '^#support/(.*)\\.js$': '<rootDir>/test/support/$1.ts',
};

/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/libs', '<rootDir>/sample-app', '<rootDir>/test'],
  testMatch: ['**/*.spec.ts'],
  testPathIgnorePatterns: ['/node_modules/', '\\.slow\\.spec\\.ts$'], // see jest.slow.config.js
  maxWorkers: 4, // many tests wait rather than compute
  workerIdleMemoryLimit: '1GB', // Node keeps the ES modules of every test file
  reporters: ['default', '<rootDir>/test/support/skipped-reporter.js'],
  testSequencer: '<rootDir>/test/support/longest-first.js',
  testTimeout: 120_000, // ends a test that hangs; no test is meant to fail by it, however busy the machine is
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: sources,
  modulePathIgnorePatterns: ['/dist/', '/build/'],
  transform: { '^.+\\.ts$': ['ts-jest', { useESM: true, tsconfig: '<rootDir>/tsconfig.json' }] },
  collectCoverageFrom: ['libs/*/src/**/*.ts'],
};
