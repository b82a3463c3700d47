import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** Sessions as stores get them: with requests under way, each names its own in a property that is not saved. */
export class RequestSessions {
  readonly #underWay: boolean;
  readonly #requests = new Map<string, IncomingMessage>();

  constructor(underWay: boolean) {
    this.#underWay = underWay;
  }

  of(sid: string, uid?: string): object {
    const cookie = { path: '/', originalMaxAge: null, expires: '2100-01-01T00:00:00.000Z' };
    const session = { cookie, ...(uid !== undefined && { user: { uid } }) };
    if (this.#underWay) Object.defineProperty(session, 'req', { value: this.#request(sid) });
    return session;
  }

  #request(sid: string): IncomingMessage {
    const known = this.#requests.get(sid);
    if (known) return known;
    const request = new IncomingMessage(new Socket());
    Object.assign(request, { sessionID: sid, res: new ServerResponse(request) });
    this.#requests.set(sid, request);
    return request;
  }
}
