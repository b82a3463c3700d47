import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Router } from 'express';
import { jsonAnswer, type Answer } from '../service/answer.js';
import { hasMediaType, JSON_MEDIA_TYPE } from '../service/media-type.js';
import { Refusal } from '../service/refusal.js';
import { IncompleteRequest, readBody } from '../service/request-body.js';
import { sendAnswer } from '../service/send-answer.js';
import type { DebateSessions } from '../state/debate-sessions.js';
import type { SimulatedUsers } from '../state/simulated-users.js';
import { DeletedUidError } from '../state/uid-errors.js';
import { debatePage } from './debate-page.js';
import { modeRequest, type DemoModeSwitch } from './demo-mode.js';
import { debateState } from './debate-state.js';
import type { EventStream } from './event-stream.js';
import { loopbackOnly } from './loopback-only.js';
import { signInRequest } from './sign-in-request.js';

/** The page and what it needs. None of it is part of the interface, is recorded or meets a fault. */
export function demoRoutes(
  applicationName: string,
  demo: DemoModeSwitch,
  users: SimulatedUsers,
  debate: DebateSessions,
  events: EventStream,
): Router {
  const router = Router({ caseSensitive: true, strict: true });

  router.use('/simulator', loopbackOnly);
  router.get('/', loopbackOnly, (_request, response) => {
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
  router.get('/simulator/events', (_request, response) => {
    events.connect(response);
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
