import config from './jest.config.js';

/** The tests that `npm test` leaves out: they take a browser or minutes. `npm run test:all` runs all. */
export default { ...config, testMatch: ['**/*.slow.spec.ts'], testPathIgnorePatterns: ['/node_modules/'] };
