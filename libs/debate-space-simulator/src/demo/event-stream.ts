import type { ServerResponse } from 'node:http';
import type { DebateSessions } from '../state/debate-sessions.js';
import type { SimulatedUsers } from '../state/simulated-users.js';
import type { DemoModeSwitch } from './demo-mode.js';
import { debateState } from './debate-state.js';

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

  /** Keeps the response open until its connection closes. */
  connect(response: ServerResponse): void {
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // The page of a sample application on another port shows the state too.
      'access-control-allow-origin': '*',
    });
    this.#viewers.add(response);
    response.once('close', () => this.#viewers.delete(response));
    response.write(`retry: 1000\n${this.#message()}`);
  }

  #message(): string {
    return `data: ${JSON.stringify(debateState(this.#demo.mode, this.#users, this.#debate))}\n\n`;
  }
}
