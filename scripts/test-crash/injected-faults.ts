// Faults of the kind that this test is to find, put between the plugin and its storage inside an app process.
import type { DebateSpaceStorage, StorageEngine } from 'nestjs-debate-space';
import { ERASURE_FAULTS, erasureFaults } from './erasure-faults.js';
import { LOGOUT_FAULTS, logoutFaults } from './logout-faults.js';
import type { ErasureSize, LogoutSize } from './scenario.js';
import { wrapEngine, type Commit, type Methods } from './wrapped-storage.js';

/** What takes the place of methods of the storage; of its `commit`, where it is one function. */
export type StorageFault = (storage: DebateSpaceStorage) => Commit | Methods;

/** With the scenario that is to find it, and with what it is to be told by. */
export interface InjectedFault {
  readonly name: string;
  readonly under: string;
  readonly tell: RegExp;
  /** Of the scenario, when it is to find this one. */
  readonly size?: Partial<LogoutSize & ErasureSize>;
}

const FAULTS: Readonly<Record<string, StorageFault>> = { ...LOGOUT_FAULTS, ...ERASURE_FAULTS };

export const injectedFaults: readonly InjectedFault[] = [...logoutFaults, ...erasureFaults];

/** A storage engine with one of these faults; as it is, when none is named. */
export function withFault(name: string | undefined, engine: StorageEngine): StorageEngine {
  if (name === undefined) return engine;
  const fault = FAULTS[name];
  if (!fault) throw new Error(`no such fault: ${name}`);
  return wrapEngine(engine, (storage) => {
    const replaced = fault(storage);
    return typeof replaced === 'function' ? { commit: replaced } : replaced;
  });
}
