import type { Request, RequestHandler } from 'express';
import { substituteAnswer, sendAnswer } from '../faults/spoilt-answer.js';
import type { Faults } from '../faults/faults.js';
import { type Operation, type ReceivedRequests, draftRequest } from '../received-requests.js';
import { type Answer, IncompleteRequest, readBody, Refusal, type ServiceCall } from './http.js';

/**
 * An operation of the interface: all or nothing, and immediately.
 * @throws Refusal when it is not done
 */
export type Perform = (call: ServiceCall) => Answer;

/** What every route of the interface passes through. */
export interface RouteSurroundings {
  readonly faults: Faults;
  readonly received: ReceivedRequests;
}

interface Outcome {
  /** Absent when the connection ends without an answer. */
  readonly answer?: Answer;
  readonly reason?: string;
}

/** Reads the request, performs the operation or simulates a failure, records the outcome, and answers. */
export function contractRoute(
  operation: Operation,
  perform: Perform,
  { faults, received }: RouteSurroundings,
): RequestHandler {
  return async (request, response) => {
    const at = Date.now();
    const fault = faults.take(operation);
    const record = (call: ServiceCall, { answer, reason }: Outcome): void => {
      const answered = fault?.kind === 'reset-after-apply' ? undefined : answer;
      received.record({
        ...draftRequest(operation, call, at),
        ...(answered !== undefined && { status: answered.status }),
        accepted: reason === undefined,
        ...(reason !== undefined && { reason }),
      });
    };

    if (fault?.kind === 'outage') {
      record(callFrom(request, ''), { reason: 'simulated failure: outage' });
      request.socket.destroy();
      return;
    }
    let call = callFrom(request, '');
    let outcome: Outcome;
    try {
      call = callFrom(request, await readBody(request));
      const substitute = fault && substituteAnswer(fault);
      if (substitute?.applies === false) {
        outcome = { answer: substitute.answer, reason: `simulated failure: ${fault?.kind}` };
      } else {
        const answer = perform(call);
        outcome = { answer: substitute?.answer ?? answer };
      }
    } catch (error) {
      outcome = outcomeOf(error);
    }
    record(call, outcome);
    if (outcome.answer) await sendAnswer(response, outcome.answer, fault);
  };
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof Refusal) return { answer: error.answer, reason: error.message };
  if (error instanceof IncompleteRequest) return { reason: error.message };
  const refusal = Refusal.of(500, 'The simulator failed');
  return { answer: refusal.answer, reason: error instanceof Error ? error.message : String(error) };
}

function callFrom(request: Request, body: string): ServiceCall {
  const [path = ''] = request.originalUrl.split('?', 1);
  return {
    method: request.method,
    path,
    params: request.params as Record<string, string>,
    query: { ...(request.query as Record<string, string | string[]>) },
    headers: request.headers,
    body,
  };
}
