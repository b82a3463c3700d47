import { EventEmitter } from 'node:events';
import type { Operation } from './operation.js';
import type { ReceivedRequest } from './received-request.js';

/** Which requests are meant: those of one operation, or those a predicate picks. */
export type RequestMatch = Operation | ((request: ReceivedRequest) => boolean);

/** How many requests `waitFor` waits for, and for how long. */
export interface WaitOptions {
  /** How many requests must match. Default 1. */
  count?: number;
  /** How long to wait, in milliseconds. Default 4000: a test of Jest or Vitest may take 5000. */
  timeoutMs?: number;
}

/**
 * Everything that reached the server, in the order in which the outcomes were decided. A request is on
 * record before its answer is sent, so a client that has an answer finds its request here.
 */
export class ReceivedRequests {
  readonly #requests: ReceivedRequest[] = [];
  readonly #arrivals = new EventEmitter<{ arrival: [] }>().setMaxListeners(0);

  get all(): readonly ReceivedRequest[] {
    return [...this.#requests];
  }

  get count(): number {
    return this.#requests.length;
  }

  of(operation: Operation): ReceivedRequest[] {
    return this.#requests.filter((request) => request.operation === operation);
  }

  /** The uids of the accepted logouts, in order. */
  get logouts(): string[] {
    return this.of('logout').flatMap(({ accepted, uid }) => (accepted && uid !== undefined ? [uid] : []));
  }

  clear(): void {
    this.#requests.length = 0;
  }

  /**
   * Resolves with the matching requests as soon as there are `count` of them; those on record count.
   * @throws Error after `timeoutMs`, naming what was received instead
   */
  waitFor(match: RequestMatch, options: WaitOptions = {}): Promise<ReceivedRequest[]> {
    const { count = 1, timeoutMs = 4000 } = options;
    const matches = typeof match === 'function' ? match : (r: ReceivedRequest) => r.operation === match;
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        clearTimeout(timer);
        this.#arrivals.off('arrival', check);
      };
      const check = (): void => {
        const found = this.#requests.filter(matches);
        if (found.length < count) return;
        stop();
        resolve(found);
      };
      const timer = setTimeout(() => {
        stop();
        const wanted = typeof match === 'function' ? 'matching' : match;
        reject(new Error(`Waited ${timeoutMs} ms for ${count} ${wanted} request(s). ${this.#summary()}`));
      }, timeoutMs);
      this.#arrivals.on('arrival', check);
      check();
    });
  }

  /** Puts a request on record. Called by the server. */
  record(request: ReceivedRequest): void {
    this.#requests.push(Object.freeze(request));
    this.#arrivals.emit('arrival');
  }

  #summary(): string {
    if (this.#requests.length === 0) return 'Nothing was received.';
    const lines = this.#requests.map(({ method, path, status, accepted, reason }) => {
      const outcome = status === undefined ? 'no answer' : `status ${status}`;
      return `${method} ${path}: ${outcome}, ${accepted ? 'accepted' : `not accepted: ${reason ?? '?'}`}`;
    });
    return ['Received:', ...lines].join('\n  ');
  }
}
