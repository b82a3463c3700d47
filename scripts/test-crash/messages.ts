// What an app process and its parent say to each other.
import type { SessionData } from 'express-session';
import type { DebateSpaceEvent, DebateSpaceModuleOptions, ErasureMode } from 'nestjs-debate-space';
import type { EngineName } from './engines.js';

/** What an app process begins with, as JSON on its command line. */
export interface AppSettings {
  readonly program: string;
  readonly engine: EngineName;
  /** Where its storage is. */
  readonly place: string;
  readonly options: DebateSpaceModuleOptions;
  /** The name of an injected fault. */
  readonly fault?: string | undefined;
  /** How long a session lives; the plugin looks for expired ones. Without it sessions live until somebody ends them. */
  readonly sessionMs?: number | undefined;
  /** Of the apps that erase users. */
  readonly erasure?: { readonly mode: ErasureMode };
}

/** Events of the plugin that are worth it, and what only an app or its parent knows. */
export type AppEvent =
  | DebateSpaceEvent
  | { readonly type: 'rows'; readonly rows: number }
  | { readonly type: 'requested' | 'rolled-back' }
  | { readonly type: 'died'; readonly cause: string };

/**
 * Of an app: `uids`: where their logouts stand; `account`: what is proven of these users; `erase`: request it; `measure`: what
 * the process needs; none of them: how it stands.
 */
export interface Question {
  readonly uids?: readonly string[];
  readonly retry?: boolean;
  readonly account?: readonly string[];
  readonly erase?: readonly string[];
  readonly measure?: boolean;
}

/** What an app process needs, after a garbage collection. */
export interface Measured {
  readonly heapMb: number;
  /** Timers, sockets and the like that are open. */
  readonly handles: number;
}

type NumberedQuestion = Question & { readonly question: number };

export interface StoreCall {
  readonly store: 'get' | 'set' | 'destroy';
  readonly sid: string;
  readonly session?: SessionData;
}

export type NumberedStoreCall = StoreCall & { readonly number: number };

export interface StoreAnswer {
  /** The number of the call. */
  readonly stored: number;
  readonly session?: SessionData | null | undefined;
}

export type FromApp =
  | NumberedStoreCall
  | { readonly ready: string | true }
  | { readonly event: AppEvent }
  | { readonly question: number; readonly answer?: unknown };

export type FromParent = NumberedQuestion | StoreAnswer;

/** Says it to the parent, unless the parent is gone. */
export function tellParent(message: FromApp): void {
  if (process.connected) process.send?.(message);
}
