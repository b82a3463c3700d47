// A service for the benchmark of the drain: `healthy` answers 200; `flaky` answers one request in ten with 503 and resets
// the connection of one in twenty; `down` answers 503, after a moment in which requests at the same time would meet.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import { listen } from './listen.js';

const UNAVAILABLE = 0.1;
const RESET = 0.05;
const DOWN_MS = 50;

const [kind] = process.argv.slice(2);

export type Kind = 'healthy' | 'flaky' | 'down';

/** When a request came, in ms after the first, and how many were under way then, itself included. */
export interface Arrival {
  readonly at: number;
  readonly underWay: number;
}

/**
 * `count`: how many were delivered; `times`: the milliseconds from the first request until so many were delivered;
 * `requests`: the arrivals.
 */
interface Question {
  readonly question: 'count' | 'times' | 'requests';
  readonly counts?: readonly number[];
}

/** When each logout was delivered: `performance.now()`. */
const delivered: number[] = [];
/** `at`: `performance.now()`. */
const arrived: Arrival[] = [];
let underWay = 0;

const answer = (response: ServerResponse, status: number): void => {
  underWay -= 1;
  if (status === 200) delivered.push(performance.now());
  response.writeHead(status).end();
};
const kinds: Readonly<Record<Kind, (request: IncomingMessage, response: ServerResponse) => void>> = {
  healthy: (_request, response) => {
    answer(response, 200);
  },
  flaky: (request, response) => {
    const chance = Math.random();
    if (chance >= UNAVAILABLE + RESET) answer(response, 200);
    else if (chance < UNAVAILABLE) answer(response, 503);
    else {
      underWay -= 1;
      request.socket.resetAndDestroy();
    }
  },
  down: (_request, response) => {
    setTimeout(() => {
      answer(response, 503);
    }, DOWN_MS);
  },
};

const server = createServer((request, response) => {
  underWay += 1;
  arrived.push({ at: performance.now(), underWay });
  request.resume().once('end', () => {
    kinds[kind as Kind](request, response);
  });
});

const first = (): number => arrived[0]?.at ?? NaN;
const answers: Readonly<Record<Question['question'], (counts: readonly number[]) => object>> = {
  count: () => ({ delivered: delivered.length }),
  times: (counts) => ({ times: counts.map((count) => (delivered[count - 1] ?? NaN) - first()) }),
  requests: () => ({ requests: arrived.map(({ at, ...rest }) => ({ at: at - first(), ...rest })) }),
};
process.on('message', ({ question, counts = [] }: Question) => process.send?.(answers[question](counts)));
process.once('disconnect', () => process.exit());
process.send?.({ url: await listen(server) });
