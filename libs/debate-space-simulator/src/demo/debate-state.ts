import { fullName, type SimulatedUsers } from '../state/users.js';
import type { DebateSessions } from '../state/debate-sessions.js';
import type { DemoMode, DemoModeSwitch } from './demo-mode.js';
import type { ServerResponse } from 'node:http';

/** What the page shows. `id` is the service's own number; `uid` and `name` are null for an anonymized user. */
export interface DebateState {
  mode: DemoMode;
  signedIn: string[];
  users: { id: number; uid: string | null; name: string | null; contributions: number }[];
}

export function debateState(mode: DemoMode, users: SimulatedUsers, debate: DebateSessions): DebateState {
  return {
    mode,
    signedIn: debate.signedIn(),
    users: users.all().map((user) => ({
      id: user.id,
      uid: user.uid,
      name: fullName(user),
      contributions: user.contributions,
    })),
  };
}

/** Server-sent events: the full state immediately and after each change. Not part of the interface. */
export class EventStream {
  readonly #demo: DemoModeSwitch;
  readonly #users: SimulatedUsers;
  readonly #debate: DebateSessions;
  readonly #viewers = new Set<ServerResponse>();

  constructor(demo: DemoModeSwitch, users: SimulatedUsers, debate: DebateSessions) {
    this.#demo = demo;
    this.#users = users;
    this.#debate = debate;
    const send = (): void => {
      for (const viewer of this.#viewers) viewer.write(this.#message());
    };
    demo.on('change', send);
    users.on('change', send);
    debate.on('change', send);
  }

  /**
   * Keeps the response open until its connection closes.
   * @param origin of a page on another port, whose scripts may read it
   */
  connect(response: ServerResponse, origin?: string): void {
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      vary: 'origin',
      ...(origin !== undefined && { 'access-control-allow-origin': origin }),
    });
    this.#viewers.add(response);
    response.once('close', () => this.#viewers.delete(response));
    response.write(`retry: 1000\n${this.#message()}`);
  }

  #message(): string {
    return `data: ${JSON.stringify(debateState(this.#demo.mode, this.#users, this.#debate))}\n\n`;
  }
}
