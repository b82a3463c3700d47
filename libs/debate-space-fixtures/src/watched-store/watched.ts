import type { DebateSpaceSimulator } from 'debate-space-simulator';
import type { Request } from 'express';
import { Store } from 'express-session';
import type { SessionStore } from 'nestjs-debate-space';
import { inspect } from 'node:util';
import { Browser } from '../browser.js';
import { using } from '../service.js';
import { SessionHost } from '../session-host.js';
import { watching } from '../watching.js';
import type { ContractKind } from './kinds.js';

/** A store in a running app. */
export interface Scene {
  readonly kind: ContractKind;
  readonly store: object;
  /** What the store inherits from, as its class made it. */
  readonly prototype: object;
  /** Has a handler do something, in a request of a browser that is logged in. */
  readonly request: <T>(act: (request: Request) => T | Promise<T>) => Promise<T>;
  /** Closes the app; the store stays. */
  readonly close: () => Promise<void>;
}

/** One thing that a host can tell about a store. */
export interface Check<Prepared = unknown> {
  readonly name: string;
  /** Methods that the store must have. */
  readonly needs?: readonly string[];
  /** Whether it takes requests, and so a store of express-session. */
  readonly requests?: boolean;
  /** Whether a store of this kind, unwatched, stands it. Default: each does. */
  readonly suits?: (kind: ContractKind) => boolean;
  /** What is done to the store before the app has it. */
  readonly prepare?: (store: object) => Prepared;
  readonly observe: (scene: Scene, prepared: Prepared) => unknown;
}

/** Runs a check on a new store, watched or not; by the whole plugin where requests are needed. @returns all that it saw, as text */
export async function observed<T>(
  kind: ContractKind,
  { prepare, observe, requests = false }: Check<T>,
  service: DebateSpaceSimulator,
  watched: boolean,
): Promise<string> {
  const { store, close } = await kind.open();
  const prototype = Object.getPrototypeOf(store) as object;
  const prepared = prepare?.(store) as T;
  const app = await startApp(store, service, watched, requests);
  try {
    const scene = { kind, store, prototype, ...app };
    return inspect(await observe(scene, prepared), { depth: 8, compact: false, sorted: true }).replace(
      VARYING,
      '*',
    );
  } finally {
    await app.close();
    await close?.();
  }
}

/** Ids, points in time and places that are others in each run. */
const VARYING = /[0-9a-f-]{36}|[\w-]{32}|\b\d{13}\b|\/tmp\/[\w-]+/g;

async function startApp(
  store: object,
  service: DebateSpaceSimulator,
  watched: boolean,
  requests: boolean,
): Promise<Pick<Scene, 'request' | 'close'>> {
  if (!requests || !(store instanceof Store)) {
    const watch = watched ? watching(store, false) : undefined;
    const request = (): never => {
      throw new TypeError('express-session does not take this store');
    };
    return {
      request,
      close: async () => {
        await watch?.ended();
      },
    };
  }
  const debateSpace = watched ? [using(service, { session: { store: store as SessionStore } })] : [];
  let act: (request: Request) => unknown = () => undefined;
  const host = await SessionHost.start({ store, debateSpace, act: (request) => act(request) });
  let closed: Promise<void> | undefined;
  return {
    close: () => (closed ??= host.stop()),
    request: async <T>(work: (request: Request) => T | Promise<T>): Promise<T> => {
      const browser = new Browser(host.url);
      await browser.post('/login', { uid: 'alice' });
      const result = new Promise<T>((resolve, reject) => {
        act = async (request) => {
          await Promise.resolve(request).then(work).then(resolve, reject);
        };
      });
      await browser.post('/act');
      return result;
    },
  };
}
