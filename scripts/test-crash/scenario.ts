import type { DebateSpaceModuleOptions, ErasureMode } from 'nestjs-debate-space';
import type { EngineName } from './engines.js';
import type { ErasingTrial } from './erasing-trial.js';
import type { LogoutTrial } from './logout-trial.js';

type MaybePromise<T> = T | Promise<T>;

export interface LogoutSize {
  readonly kills: number;
  readonly endings: number;
}

export interface ErasureSize {
  readonly kills: number;
  readonly erasures: number;
}

interface Scenario<Trial, Size> {
  readonly name: string;
  readonly what: string;
  readonly engine: EngineName;
  /** How many run. Default: 1. */
  readonly apps?: number;
  /** How many of them, the first ones, only take requests: `worker: false`. Default: none. */
  readonly appsWithoutWorker?: number;
  /** Left out without `--full`. */
  readonly onlyFull?: boolean;
  readonly options: Partial<DebateSpaceModuleOptions>;
  /** The name of an injected fault. */
  readonly fault?: string;
  readonly size: Size;
  /** With `--full`. */
  readonly full: Size;
  /** Prepares where the storage is, and what goes with it. */
  place?(trial: Trial): MaybePromise<string>;
}

export interface LogoutScenario extends Scenario<LogoutTrial, LogoutSize> {
  disturb?(trial: LogoutTrial): Promise<void>;
  afterwards?(trial: LogoutTrial): Promise<unknown>;
  /** Between the steps of a browser, on average. */
  readonly pauseMs?: number;
  readonly browsers?: number;
  /** How long a browser stays logged in before it logs out. Default: 0. */
  readonly stayMs?: number;
  readonly sessionMs?: number;
  /**
   * Whether the user of a renewal that was cut off may be reported: no browser has the new session, and the old one is gone.
   * By a sweep, or by an app that ends in order and closes the connections first. A killed app reports nobody.
   */
  readonly reportsCutOff?: boolean;
  readonly mayLose?: boolean;
  readonly repeatsPerKill?: number;
  readonly takenUpWithinSeconds?: number;
  readonly settledWithinMs?: number;
}

export interface ErasureScenario extends Scenario<ErasingTrial, ErasureSize> {
  readonly Trial: new (scenario: ErasureScenario, size: ErasureSize, seed: number) => ErasingTrial;
  readonly mode: ErasureMode;
  readonly isStormy?: boolean;
  readonly settledWithinSeconds: number;
  disturb(trial: ErasingTrial): Promise<void>;
  disturbEnd?: ((trial: ErasingTrial) => Promise<void>) | undefined;
}

export type AnyScenario = LogoutScenario | ErasureScenario;
