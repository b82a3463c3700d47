// Faults of the kind that this test is to find, put between the plugin and its storage inside an app process.
import { ERASURE_FAULTS, erasureFaults } from './erasure-faults.mjs';
import { LOGOUT_FAULTS, logoutFaults } from './logout-faults.mjs';
import { wrapEngine } from './wrapped-storage.mjs';

const FAULTS = { ...LOGOUT_FAULTS, ...ERASURE_FAULTS };

/** Each with the scenario that is to find it, and with what it is to be told by. */
export const injectedFaults = [...logoutFaults, ...erasureFaults];

/** A storage engine with one of these faults; as it is, when none is named. */
export function withFault(name, engine) {
  if (name === undefined) return engine;
  return wrapEngine(engine, (storage) => {
    const replaced = FAULTS[name](storage);
    return typeof replaced === 'function' ? { commit: replaced } : replaced;
  });
}
