// For `node --import`: the packages of MISSING_PACKAGES, separated by commas, cannot be loaded.
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

if (isMainThread) register(import.meta.url);
const missing = process.env.MISSING_PACKAGES.split(',');

export function resolve(specifier, context, next) {
  if (missing.includes(specifier.split('/')[0]))
    throw Object.assign(new Error(`${specifier} is missing`), { code: 'ERR_MODULE_NOT_FOUND' });
  return next(specifier, context);
}
