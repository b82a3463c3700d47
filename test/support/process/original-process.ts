import { runInThisContext } from 'node:vm';

/** What Node reports about warnings and errors that nobody handles: Jest gives tests a copy that never hears of them. */
export const originalProcess = (): NodeJS.Process => runInThisContext('process') as NodeJS.Process;
