import jest from './jest.config.js';

/** The specs of one library alone, without a check of types: for each mutant again. */
export default {
  ...jest,
  rootDir: import.meta.dirname,
  roots: [`<rootDir>/libs/${process.env.LIBRARY ?? 'debate-space'}/src`],
  testPathIgnorePatterns: ['/node_modules/', '/schematics/'], // of a test environment of its own
  transform: {
    '^.+\\.ts$': [
      'ts-jest',
      { useESM: true, tsconfig: '<rootDir>/tsconfig.json', isolatedModules: true, diagnostics: false },
    ],
  },
};
