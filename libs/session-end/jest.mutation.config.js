import { fileURLToPath } from 'node:url';
import jest from '../../jest.config.js';

/** The specs of this library alone, without a check of types: for each mutant again. */
export default {
  ...jest,
  rootDir: fileURLToPath(new URL('../..', import.meta.url)),
  roots: ['<rootDir>/libs/session-end/src'],
  transform: {
    '^.+\\.ts$': [
      'ts-jest',
      { useESM: true, tsconfig: '<rootDir>/tsconfig.json', isolatedModules: true, diagnostics: false },
    ],
  },
};
