import { describe, expect, it, jest } from '@jest/globals';
import { BrowserMoves } from './browser-cookies.js';
import type { SessionRequest } from './session-request.js';

/** A request that a browser has sent with the session s1, and that is answered. */
const answered = (sessionID: string, setCookie?: string): SessionRequest =>
  ({
    native: { url: '/' },
    sessionID,
    cookieHeader: 'sid=s1',
    isAnswered: true,
    setCookies: setCookie === undefined ? [] : [setCookie],
  }) as unknown as SessionRequest;

const S1 = { sid: 's1', uid: 'alice' };
const uidOf = (sid: string): string | undefined => (sid === 's2' ? 'alice' : undefined);

describe('a browser that has sent two requests with one session', () => {
  it('has the session of the answer that leaves last, and leaves the renewed one by it', () => {
    const moves = new BrowserMoves();
    expect(moves.answered(S1, answered('s2', 'sid=s2'), uidOf)).toEqual(S1);
    expect(moves.after('s1')).toMatchObject({ sid: 's2', uid: 'alice' });
    const left = moves.answered({ sid: 's1', uid: undefined }, answered('s3', 'sid=s3'), uidOf);
    expect(left).toMatchObject({ sid: 's2', uid: 'alice' });
    expect(moves.after('s1')).toMatchObject({ sid: 's3', uid: undefined });
  });

  it('leaves the renewed session when a rolling answer gives it the old one again', () => {
    const moves = new BrowserMoves();
    moves.answered(S1, answered('s2', 'sid=s2'), uidOf);
    expect(moves.answered(S1, answered('s1', 'sid=s1'), uidOf)).toMatchObject({ sid: 's2', uid: 'alice' });
    expect(moves.after('s1')).toBeUndefined();
  });

  it('keeps its session by an answer without that cookie', () => {
    const moves = new BrowserMoves();
    moves.answered(S1, answered('s2', 'sid=s2'), uidOf);
    expect(moves.answered(S1, answered('s1'), uidOf)).toBeUndefined();
    expect(moves.answered(S1, answered('s1', 'theme=dark'), uidOf)).toBeUndefined();
    expect(moves.after('s1')).toMatchObject({ sid: 's2', uid: 'alice' });
  });

  it('has no session when its cookie is cleared', () => {
    const moves = new BrowserMoves();
    expect(moves.answered(S1, answered('s1', 'sid=; Max-Age=0'), uidOf)).toEqual(S1);
    expect(moves.after('s1')).toMatchObject({ sid: undefined, uid: undefined });
    expect(moves.answered(S1, answered('s1', 'sid=; Max-Age=0'), uidOf)).toBeUndefined();
  });

  it('has gone on behind the back of a request that was under way then, and of no later one', () => {
    const moves = new BrowserMoves();
    const since = (ms: number): SessionRequest => ({ since: ms < 0 ? 0.5 : 1e9 }) as SessionRequest;
    expect(moves.isBehind('s1', since(-1))).toBe(false);
    moves.answered(S1, answered('s2', 'sid=s2'), uidOf);
    expect(moves.isBehind('s1', since(-1))).toBe(true);
    expect(moves.isBehind('s1', since(1_000))).toBe(false);
    expect(moves.isBehind('s1', undefined)).toBe(false);
    expect(moves.isBehind('s2', since(-1))).toBe(false);
  });

  describe('of which one is closed after an answer that had left later', () => {
    const late = (sessionID: string, setCookie: string): SessionRequest =>
      Object.assign(answered(sessionID, setCookie), { answeredAt: 1 });
    const goneOn = (): BrowserMoves => {
      const moves = new BrowserMoves();
      moves.answered(S1, Object.assign(answered('s2', 'sid=s2'), { answeredAt: 2 }), uidOf);
      return moves;
    };

    it.each([
      { by: 'gave it a third', request: late('s3', 'sid=s3'), left: { sid: 's3', uid: undefined } },
      { by: 'gave it the old one again', request: late('s1', 'sid=s1'), left: undefined },
      {
        by: 'cleared its cookie',
        request: late('s1', 'sid=; Max-Age=0'),
        left: { sid: undefined, uid: undefined },
      },
    ])('has left what that answer has given it, when it $by', ({ request, left }) => {
      const moves = goneOn();
      expect(moves.answered(S1, request, uidOf)).toEqual(left);
      expect(moves.after('s1')).toMatchObject({ sid: 's2', uid: 'alice' });
    });
  });

  it('is known to have gone on for a minute', () => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    const clock = jest.spyOn(performance, 'now').mockReturnValue(1_000); // the cache keeps it for a moment
    const moves = new BrowserMoves();
    moves.answered(S1, answered('s2', 'sid=s2'), uidOf);
    const after = [60_000, 62_000].map((ms) => {
      clock.mockReturnValue(ms);
      jest.runAllTimers();
      return moves.after('s1')?.sid;
    });
    clock.mockRestore();
    jest.useRealTimers();
    expect(after).toEqual(['s2', undefined]);
  });

  it('keeps its session by an answer that leaves its cookie as it is', () => {
    const moves = new BrowserMoves();
    expect(moves.answered(S1, answered('s1'), uidOf)).toBeUndefined();
    expect(moves.answered(S1, answered('s1', 'sid=s1'), uidOf)).toBeUndefined();
    expect(moves.after('s1')).toBeUndefined();
  });
});
