import { JSON_TYPE, type Answer } from '../service/http.js';
import type { Fault } from './faults.js';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** An answer that takes the place of the real one. */
export interface Substitute {
  /** Whether the operation is applied all the same. */
  readonly applies: boolean;
  readonly answer: Answer;
}

/** The answer in place of the real one; undefined for the kinds that only disturb the real one. */
export function substituteAnswer(fault: Fault): Substitute | undefined {
  switch (fault.kind) {
    case 'status': {
      const body = fault.body ?? { success: false, error: `Status ${fault.status}` };
      const answer = answerWith(fault.status, JSON_TYPE, body, fault.headers);
      return { applies: false, answer };
    }
    case 'body': {
      const answer = answerWith(fault.status ?? 200, fault.contentType ?? JSON_TYPE, fault.body);
      return { applies: fault.apply ?? false, answer };
    }
    case 'redirect': {
      const answer = { status: fault.status ?? 302, headers: { location: fault.location }, body: '' };
      return { applies: false, answer };
    }
    default:
      return undefined;
  }
}

function answerWith(
  status: number,
  contentType: string,
  body: unknown,
  headers: Record<string, string> = {},
): Answer {
  const own = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    status,
    headers: { 'content-type': contentType, ...Object.fromEntries(own) },
    body: typeof body === 'string' || body === undefined ? (body ?? '') : JSON.stringify(body),
  };
}

/** In how many pieces a slow body drips. */
const PIECES = 8;

/** Sends an answer, or fails as simulated. Returns early when the client goes away. */
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

/** False when the client has gone. */
async function pause(ms: number, gone: AbortSignal): Promise<boolean> {
  try {
    // A client that waits for the answer keeps its own process alive.
    await delay(ms, undefined, { signal: gone, ref: false });
    return true;
  } catch {
    return false;
  }
}
