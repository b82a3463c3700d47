import { setTimeout as pause } from 'node:timers/promises';
import type { Browser } from '../browser/browser.js';
import type { Handling } from './handling.js';

/** A browser in a scene. */
export interface Actor {
  readonly browser: Browser;
  /** Sends a request to the handler of this name. @returns the body of the answer */
  request(name: string, signal?: AbortSignal): Promise<string>;
  /** The same browser in another tab: it shares the cookies. */
  sid(): Promise<string>;
}

/** Several browsers at a host whose handlers have names. */
export interface Scene {
  /** A browser in which this user has logged in, if any. */
  enter(uid?: string): Promise<Actor>;
  /** What the handler of this name does. */
  on(name: string, act: (handling: Handling) => unknown): void;
  /** What a job does to the store of the host. */
  job(work: (store: Handling['store']) => unknown): Promise<void>;
  /** Resolves when as many users have been reported to the host's events; at once without the plugin. */
  reported(count?: number): Promise<void>;
  /** Notes that the answer is whole which ends a session: what it ends must be stored by now. */
  answered(): void;
}

/** Of hosts whose scenes go on for longer than that. */
export const SHORT_GRACE_MS = 50;

export const longerThanTheGrace = (): Promise<void> => pause(3 * SHORT_GRACE_MS);
