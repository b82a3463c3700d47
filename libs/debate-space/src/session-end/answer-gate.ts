import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isPromise, type Containment, type MaybePromise } from './containment.js';
import { withTimeout } from './waits.js';
import { hasStubConnection, requestOf } from './session-request.js';

type Method = (...args: unknown[]) => unknown;

/** Something that is done when an answer is about to leave; the answer waits for its promise. */
export interface BeforeAnswer {
  readonly containment: Containment;
  /** The longest wait, in milliseconds. */
  readonly timeoutMs: number;
  answering(): MaybePromise<unknown>;
}

const GATE = Symbol('what is done before the answer leaves');
const BEHIND = Symbol('the prototype behind the gate of an app');

/** A response whose `end` is ours; also as much of Node's own as sealing its head takes. */
interface GatedResponse extends Pick<ServerResponse, 'headersSent' | 'socket' | 'destroy'> {
  [GATE]?: Gate;
  readonly [BEHIND]?: Pick<GatedResponse, 'end' | 'write'>;
  end: Method;
  write: Method;
  _contentLength?: number | null;
  _implicitHeader?: () => void;
}

interface Gate {
  /** The response's own `end`, or that of a host's wrapper. */
  readonly end: Method;
  readonly write: Method;
  /** Whether no wrapper is behind the gate, which may change the body and the head. */
  readonly isInnermost: boolean;
  readonly before: Set<BeforeAnswer>;
  /** For a gate in the prototype of an app. */
  readonly behind?: object;
  /** While the answer is held: the calls that the host makes after its `end`. */
  late?: (() => unknown)[];
}

/**
 * Puts a gate in front of the `end` of all responses of an Express app, in their prototype: behind everything that wraps a
 * response, such as session middleware, so that the gate sees what that saves last.
 * @returns how to take it away
 */
export function gateAnswersOf(prototype: object): () => void {
  if (Object.hasOwn(prototype, BEHIND)) return () => undefined; // of another application
  const behind = Object.getPrototypeOf(prototype) as Pick<GatedResponse, 'end' | 'write'>;
  const through = (name: 'end' | 'write', gated: Method) =>
    function (this: GatedResponse): unknown {
      const seen = requestOf(this);
      const isOurs = seen?.hasGate === true && this[GATE]?.behind === behind;
      if (!isOurs) seen?.noteHead();
      // eslint-disable-next-line prefer-rest-params -- each response makes such a call, and an array costs more
      return Reflect.apply(isOurs ? gated : behind[name], this, arguments);
    };
  const [end, write] = [through('end', gatedEnd), through('write', gatedWrite)];
  const parts = { [BEHIND]: behind, end, write };
  for (const name of Reflect.ownKeys(parts))
    Object.defineProperty(prototype, name, {
      configurable: true,
      writable: true,
      value: Reflect.get(parts, name),
    });
  return () => {
    for (const name of Reflect.ownKeys(parts)) Reflect.deleteProperty(prototype, name);
  };
}

/** Puts a gate in front of the `end` of one response. */
export function installGate(response: ServerResponse): void {
  const gated = response as unknown as GatedResponse;
  if (gated[GATE]) return;
  const isInnermost = !Object.hasOwn(gated, 'end') && !Object.hasOwn(gated, 'write');
  gated[GATE] = { end: gated.end, write: gated.write, isInnermost, before: new Set() };
  gated.end = gatedEnd;
  gated.write = gatedWrite;
}

/** Has something done before the answer of this response leaves. Does nothing when the answer has ended. */
export function beforeAnswer(response: ServerResponse, before: BeforeAnswer): void {
  const gated = response as unknown as GatedResponse;
  if (response.writableEnded || gated[GATE]?.late) return;
  const { [BEHIND]: behind } = gated;
  const seen = requestOf(response);
  if (behind && seen && !gated[GATE]) {
    gated[GATE] = { end: behind.end, write: behind.write, behind, isInnermost: true, before: new Set() };
    seen.hasGate = true;
  } else installGate(response);
  gated[GATE]?.before.add(before);
}

/** Session middleware may write the head and most of the body before it has saved, and ends the answer after that. */
function gatedWrite(this: GatedResponse, ...args: unknown[]): unknown {
  const gate = this[GATE];
  if (!gate) return undefined; // both are set together
  const write = (): unknown => passOn(this, gate.write, args);
  if (gate.late) {
    gate.late.push(write);
    return !Object.hasOwn(this, 'writableEnded'); // after the end it is refused
  }
  if (gate.before.size === 0 || !gate.isInnermost) return write();
  if (!holdsFor([...gate.before], this, gate, write)) return write();
  return true;
}

function gatedEnd(this: GatedResponse, ...args: unknown[]): unknown {
  const gate = this[GATE];
  if (!gate) return undefined; // both are set together
  const end = (): unknown => passOn(this, gate.end, args);
  if (gate.late) {
    gate.late.push(end);
    noteEnded(this);
    return this;
  }
  const all = [...gate.before];
  gate.before.clear();
  if (all.length === 0) return end();
  const canWait = (this.headersSent || gate.isInnermost) && sealHead(this, args);
  if (!canWait) {
    for (const each of all) void answering(each);
    return end();
  }
  if (!holdsFor(all, this, gate, end)) return end();
  noteEnded(this);
  return this;
}

/** The head leaves now, at the latest: not before an answer that is held. */
function passOn(response: GatedResponse, method: Method, args: unknown[]): unknown {
  requestOf(response)?.noteHead();
  return Reflect.apply(method, response, args);
}

/** Does what is to be done before, and holds the answer if that takes time. @returns whether it does */
function holdsFor(
  all: readonly BeforeAnswer[],
  response: GatedResponse,
  gate: Gate,
  call: () => unknown,
): boolean {
  const waits = all.flatMap((each) => {
    const ready = answering(each);
    return isPromise(ready) ? [withTimeout(ready, each.timeoutMs, undefined)] : [];
  });
  if (waits.length > 0) hold(response, gate, call, Promise.all(waits), all[0]?.containment);
  return waits.length > 0;
}

const FAILED = Symbol('the call has thrown');

function answering(each: BeforeAnswer): MaybePromise<unknown> {
  return each.containment.run<unknown>('response.end', () => each.answering(), undefined);
}

/**
 * Ends the response later. To the host it has ended: `writableEnded` is true, and what the host writes all the same
 * comes after the end, as without us. What such a call throws then has no caller any more.
 */
function hold(
  response: GatedResponse,
  gate: Gate,
  end: () => unknown,
  ready: Promise<unknown>,
  containment: Containment | undefined,
): void {
  const late = [end];
  const release = (): void => {
    if (!gate.late) return;
    gate.late = undefined;
    giveBack();
    Reflect.deleteProperty(response, 'writableEnded');
    const destroy = (): void => void response.destroy(); // or its client would wait forever
    for (const call of late) if (containment?.run('response.end', call, FAILED) === FAILED) destroy();
  };
  const giveBack = beforeClose(response.socket, release);
  gate.late = late;
  void ready.then(release);
}

/** To the host a held answer has ended. */
function noteEnded(response: GatedResponse): void {
  if (hasStubConnection(response)) return; // or its adapter would take the answer before it has left
  Object.defineProperty(response, 'writableEnded', { configurable: true, value: true });
}

/** What closes the connection must not lose an answer that has ended: without us, it would be on its way. */
function beforeClose(socket: Socket | null, release: () => void): () => void {
  if (!socket) return () => undefined;
  const closing = ['destroy', 'destroySoon', 'end'] as const;
  const before = closing.map((name) => [name, Object.getOwnPropertyDescriptor(socket, name)] as const);
  for (const name of closing) {
    const original = Reflect.get(socket, name) as Method | undefined;
    if (typeof original !== 'function') continue;
    const value = (...args: unknown[]): unknown => {
      release();
      return Reflect.apply(original, socket, args);
    };
    Object.defineProperty(socket, name, { configurable: true, writable: true, value });
  }
  return () => {
    for (const [name, own] of before) {
      Reflect.deleteProperty(socket, name);
      if (own) Object.defineProperty(socket, name, own);
    }
  };
}

/**
 * From its end on nothing can change the head of an answer, as without us. HTTP/2 renders it when it is sent.
 * @returns whether the answer can wait: what `end` does not take must throw in the caller's face
 */
function sealHead(response: GatedResponse, [chunk, encoding]: unknown[]): boolean {
  const length = lengthOf(typeof chunk === 'function' ? undefined : chunk, encoding);
  if (length === undefined) return false;
  if (!response.headersSent && typeof response._implicitHeader === 'function') {
    response._contentLength = length;
    response._implicitHeader();
  }
  return true;
}

function lengthOf(chunk: unknown, encoding: unknown): number | undefined {
  if (chunk === undefined || chunk === null) return 0;
  if (chunk instanceof Uint8Array) return chunk.byteLength;
  if (typeof chunk !== 'string') return undefined;
  return Buffer.byteLength(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined);
}
