import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Fault } from '../faults/fault.js';
import type { Answer } from './answer.js';

/** In how many pieces a slow body drips. */
const PIECES = 8;

/** Sends an answer, in the way the fault has it. Returns early when the client goes away meanwhile. */
export async function sendAnswer(response: ServerResponse, answer: Answer, fault?: Fault): Promise<void> {
  // Writing to a response whose connection is gone raises an error nobody waits for.
  if (response.destroyed) return;
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort();
  });
  // A body would be taken for the start of the next answer on the connection.
  const whole = Buffer.from(answer.status === 204 || answer.status === 304 ? '' : answer.body);
  const half = whole.subarray(0, Math.floor(whole.length / 2));
  switch (fault?.kind) {
    case 'reset-after-apply':
      response.socket?.resetAndDestroy();
      return;
    case 'latency':
      if (await pause(fault.ms, gone.signal)) sendWhole(response, answer, whole);
      return;
    case 'malformed-body':
      sendWhole(response, answer, half);
      return;
    case 'cut-body':
      writeHead(response, answer, whole.length);
      // Only what has left the process can reach the client before the connection is gone.
      response.write(half, () => response.socket?.destroy());
      return;
    case 'slow-body':
      await drip(response, answer, whole, fault.ms, gone.signal);
      return;
    default:
      sendWhole(response, answer, whole);
  }
}

function writeHead(response: ServerResponse, { status, headers }: Answer, length: number): void {
  const framing = status === 204 || status === 304 ? {} : { 'content-length': length };
  response.writeHead(status, { ...headers, ...framing });
}

function sendWhole(response: ServerResponse, answer: Answer, body: Buffer): void {
  writeHead(response, answer, body.length);
  response.end(body);
}

async function drip(
  response: ServerResponse,
  answer: Answer,
  body: Buffer,
  ms: number,
  gone: AbortSignal,
): Promise<void> {
  writeHead(response, answer, body.length);
  response.flushHeaders();
  for (let piece = 0; piece < PIECES; piece++) {
    if (!(await pause(ms / PIECES, gone))) return;
    const [from, to] = [piece, piece + 1].map((n) => Math.floor((n * body.length) / PIECES));
    if (!response.write(body.subarray(from, to)) && !gone.aborted) {
      await Promise.race([once(response, 'drain'), once(response, 'close')]);
    }
  }
  if (!gone.aborted) response.end();
}

/** False when the client has gone meanwhile. */
async function pause(ms: number, gone: AbortSignal): Promise<boolean> {
  try {
    // A client that waits for the answer keeps its own process alive.
    await delay(ms, undefined, { signal: gone, ref: false });
    return true;
  } catch {
    return false;
  }
}
