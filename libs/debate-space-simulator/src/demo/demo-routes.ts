import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Router } from 'express';
import {
  jsonAnswer,
  type Answer,
  hasMediaType,
  JSON_MEDIA_TYPE,
  Refusal,
  IncompleteRequest,
  readBody,
} from '../service/http.js';
import { sendAnswer } from '../faults/spoilt-answer.js';
import { loopbackOrigin } from '../service/known-hosts.js';
import type { DebateSessions } from '../state/debate-sessions.js';
import { type SimulatedUsers, DeletedUidError, type NewUser } from '../state/users.js';
import { debatePage } from './debate-page.js';
import { type DemoModeSwitch, DEMO_MODES, isDemoMode, type DemoMode } from './demo-mode.js';
import { debateState, type EventStream } from './debate-state.js';
import { isJsonObject, type JsonObject } from '../logout-token.js';

/** The page and what it needs: not part of the interface, never recorded, and without simulated failures. */
export function demoRoutes(
  applicationName: string,
  demo: DemoModeSwitch,
  users: SimulatedUsers,
  debate: DebateSessions,
  events: EventStream,
): Router {
  const router = Router({ caseSensitive: true, strict: true });

  router.get('/', (_request, response) => {
    const nonce = randomBytes(16).toString('base64');
    const own = `'nonce-${nonce}'`;
    response.set({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy':
        `default-src 'none'; script-src ${own}; style-src ${own}; connect-src 'self'; img-src data:; ` +
        `base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    });
    response.end(debatePage(applicationName, nonce));
  });
  router.get('/simulator/events', ({ headers }, response) => {
    events.connect(response, loopbackOrigin(headers.origin));
  });
  router.get('/simulator/state', async (_request, response) => {
    await sendAnswer(
      response,
      jsonAnswer(200, debateState(demo.mode, users, debate), { 'cache-control': 'no-store' }),
    );
  });
  const post = (path: string, act: (body: string) => void): void => {
    router.post(path, async (request, response) => {
      try {
        await sendAnswer(response, await answerTo(request, act));
      } catch (error) {
        // Nobody is left to answer an incomplete request.
        if (!(error instanceof IncompleteRequest)) throw error;
      }
    });
  };
  post('/simulator/mode', (body) => {
    demo.set(modeRequest(body));
  });
  post('/simulator/sign-in', (body) => {
    if (demo.mode === 'down') throw Refusal.of(503, 'The service is down');
    const { uid, ...profile } = signInRequest(body);
    debate.signIn(uid, profile);
  });
  return router;
}

async function answerTo(request: IncomingMessage, act: (body: string) => void): Promise<Answer> {
  try {
    if (!hasMediaType(request.headers['content-type'], JSON_MEDIA_TYPE)) {
      throw Refusal.of(415, `Content-Type must be ${JSON_MEDIA_TYPE}`);
    }
    act(await readBody(request));
    return jsonAnswer(200, { success: true });
  } catch (error) {
    if (error instanceof Refusal) return error.answer;
    if (error instanceof DeletedUidError) return Refusal.of(409, error.message).answer;
    throw error;
  }
}

/**
 * The body of the demo sign-in: `{ uid, first_name?, last_name?, email? }`, all strings.
 * @throws Refusal 400
 */
export function signInRequest(body: string): NewUser {
  const value = jsonObject(body);
  const uid = text(value, 'uid');
  if (uid === undefined || uid === '') throw Refusal.of(400, 'uid is missing');
  return {
    uid,
    first_name: text(value, 'first_name'),
    last_name: text(value, 'last_name'),
    email: text(value, 'email'),
  };
}

function text(object: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = object[name];
  if (value === undefined || typeof value === 'string') return value;
  throw Refusal.of(400, `${name} is not a string`);
}

/** The body `{ mode }`. @throws Refusal 400 */
export function modeRequest(body: string): DemoMode {
  const { mode } = jsonObject(body);
  if (isDemoMode(mode)) return mode;
  throw Refusal.of(400, `mode must be one of: ${Object.keys(DEMO_MODES).join(', ')}`);
}

/** @throws Refusal 400 */
function jsonObject(body: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw Refusal.of(400, 'The body is not JSON');
  }
  if (isJsonObject(value)) return value;
  throw Refusal.of(400, 'The body is not a JSON object');
}
