/* global setTimeout */
// A service for the benchmark of the drain: `healthy` answers 200; `flaky` answers one request in ten with 503 and resets
// the connection of one in twenty; `down` answers 503, after a moment in which requests at the same time would meet.
import { createServer } from 'node:http';
import { performance } from 'node:perf_hooks';

const UNAVAILABLE = 0.1;
const RESET = 0.05;
const DOWN_MS = 50;

const [kind] = process.argv.slice(2);
/** When each logout was delivered, and when each request came: `performance.now()`. */
const delivered = [];
const arrived = [];
let underWay = 0;
/** How many requests were under way as each came, itself included. */
const together = [];

const answer = (response, status) => {
  underWay -= 1;
  if (status === 200) delivered.push(performance.now());
  response.writeHead(status).end();
};
const kinds = {
  healthy: (_request, response) => answer(response, 200),
  flaky: (request, response) => {
    const chance = Math.random();
    if (chance >= UNAVAILABLE + RESET) return answer(response, 200);
    if (chance < UNAVAILABLE) return answer(response, 503);
    underWay -= 1;
    return request.socket.resetAndDestroy();
  },
  down: (_request, response) => setTimeout(() => answer(response, 503), DOWN_MS),
};

const server = createServer((request, response) => {
  arrived.push(performance.now());
  underWay += 1;
  together.push(underWay);
  request.resume().once('end', () => kinds[kind](request, response));
});
server.listen(0, '127.0.0.1', () => {
  process.send({ url: `http://127.0.0.1:${server.address().port}` });
});

/** What is requested, and what it is answered with. */
const questions = {
  count: () => ({ delivered: delivered.length }),
  /** Milliseconds from the first request until so many were delivered. */
  times: ({ counts }) => ({ times: counts.map((count) => delivered[count - 1] - arrived[0]) }),
  /** When the requests came, in ms after the first, and how many were under way. */
  requests: () => ({ requests: arrived.map((at, n) => ({ at: at - arrived[0], underWay: together[n] })) }),
};
process.on('message', ({ question, ...rest }) => process.send(questions[question](rest)));
process.once('disconnect', () => process.exit());
