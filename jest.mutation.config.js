import jest from './jest.config.js';

/** The specs beside the sources alone, without a check of types: they run again for each mutant. */
export default {
  ...jest,
  rootDir: import.meta.dirname,
  roots: ['<rootDir>/libs/debate-space/src', '<rootDir>/test/support'], // where the contract finds its storages
  testPathIgnorePatterns: ['/node_modules/', '/schematics/'], // of a test environment of its own
  reporters: ['default'],
  testTimeout: 20_000, // a mutant that waits for ever fails a test, and does not count as killed by Stryker's own time limit
  transform: {
    '^.+\\.ts$': [
      'ts-jest',
      { useESM: true, tsconfig: '<rootDir>/tsconfig.json', isolatedModules: true, diagnostics: false },
    ],
  },
};
