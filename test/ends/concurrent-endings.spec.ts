import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import session from 'express-session';
import { Browser, logInTo } from 'debate-space-fixtures/browser.js';
import { Latch } from 'debate-space-fixtures/latch.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { logIn, type Act } from 'debate-space-fixtures/session-host.js';
import { destroySession, jobs, onlySid } from 'debate-space-fixtures/session-jobs.js';

/** A store whose answer to a read can be held back. */
class SlowReads extends session.MemoryStore {
  #hold: ((answer: () => void) => void) | undefined;

  /** @returns when the store has read, and how to have it answer */
  holdBackNextRead(): { readonly read: Promise<void>; readonly goOn: () => void } {
    let goOn = (): void => undefined;
    const read = new Promise<void>((resolve) => {
      this.#hold = (answer) => {
        goOn = answer;
        resolve();
      };
    });
    return {
      read,
      goOn: () => {
        goOn();
      },
    };
  }

  override get(sid: string, callback: (error: unknown, session?: session.SessionData | null) => void): void {
    const hold = this.#hold;
    this.#hold = undefined;
    super.get(sid, (error: unknown, data) => {
      if (hold)
        hold(() => {
          callback(error, data);
        });
      else callback(error, data);
    });
  }
}

const scene = scenario();

describe('endings beside each other', () => {
  it('two logout clicks at the same time are one logout', async () => {
    const bothIn = new Latch(2);
    const host = await scene.start({
      act: async (request) => {
        bothIn.open();
        await bothIn.passed;
        await destroySession(request);
      },
    });
    const browser = await logInTo(host, 'alice');

    await Promise.all([browser.post('/act'), browser.post('/act')]);

    await scene.service.received.waitFor('logout');
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('a logout is reported while another request of the same session streams on', async () => {
    const streaming = new Latch();
    const host = await scene.start({
      act: async (request, response) => {
        if (request.headers.accept !== 'text/event-stream') {
          await destroySession(request);
          return;
        }
        response.write('data: 1\n\n');
        streaming.open();
        await once(response, 'close');
      },
    });
    const browser = await logInTo(host, 'alice');
    const leaving = new AbortController();
    await browser.fetch('/act', {
      method: 'POST',
      headers: { accept: 'text/event-stream' },
      signal: leaving.signal,
    });
    await streaming.passed;

    await browser.post('/act');

    await scene.service.received.waitFor('logout');
    expect(await browser.get('/whoami')).toBe('nobody');
    leaving.abort();
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('a slow re-authentication stays silent though other requests of the same session end meanwhile', async () => {
    const [besideIn, regenerated, goOn] = [new Latch(), new Latch(), new Latch()];
    const act: Act = async (request) => {
      if (request.query.beside) {
        besideIn.open();
        await regenerated.passed;
        return;
      }
      await besideIn.passed;
      await new Promise((resolve) => request.session.regenerate(resolve));
      regenerated.open();
      await goOn.passed;
      await logIn(request, 'alice');
    };
    const host = await scene.start({ act }, { session: { graceMs: 1 } });
    const browser = await logInTo(host, 'alice');

    const renewed = browser.post('/act');
    await browser.post('/act?beside=1');
    for (let i = 0; i < 5; i += 1) await new Browser(host.url).get('/whoami'); // time enough for a wrong verdict
    goOn.open();
    await renewed;

    expect(await browser.get('/whoami')).toBe('alice');
    expect(await scene.logouts()).toEqual([]);
  });

  it('a second click that had loaded the session before the first one ended it is the same logout', async () => {
    const store = new SlowReads();
    const host = await scene.start({ store, act: destroySession });
    const browser = await logInTo(host, 'alice');

    const answer = store.holdBackNextRead();
    const second = browser.post('/act');
    await answer.read;
    await browser.post('/act');
    await scene.service.received.waitFor('logout');
    answer.goOn();
    await second;

    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('a job that puts another user into a live session, and a logout then, are the ends of both', async () => {
    const store = new session.MemoryStore();
    const host = await scene.start({
      store,
      act: async (request) => {
        const stored = { cookie: request.session.cookie, user: { uid: 'bob' } };
        await new Promise((resolve) => {
          store.set(request.sessionID, stored, resolve);
        });
        await destroySession(request);
      },
    });
    const browser = await logInTo(host, 'alice');
    await browser.post('/act');
    expect((await scene.logouts()).toSorted()).toEqual(['alice', 'bob']);
  });

  it('the same user logging in and out again is reported each time', async () => {
    const host = await scene.start({ act: destroySession });
    const browser = await logInTo(host, 'alice');
    for (let i = 0; i < 3; i += 1) {
      await browser.post('/login', { uid: 'alice' });
      await browser.post('/act');
    }
    expect(await scene.logouts()).toEqual(['alice', 'alice', 'alice']);
  });

  it('one of two sessions of a user that ends is reported, and the other one lives on', async () => {
    const host = await scene.start({ act: destroySession });
    const [one, other] = [await logInTo(host, 'alice'), await logInTo(host, 'alice')];
    await one.post('/act');
    expect(await other.get('/whoami')).toBe('alice');
    expect(await scene.logouts()).toEqual(['alice']);
  });
});

describe('endings by an administrator', () => {
  it('a job does not wait for an unanswered request of the session that it ends', async () => {
    const [inHandler, answer] = [new Latch(), new Latch()];
    const store = new session.MemoryStore();
    const host = await scene.start({
      store,
      act: async () => {
        inHandler.open();
        await answer.passed;
      },
    });
    const browser = await logInTo(host, 'alice');
    const unanswered = browser.post('/act');
    await inHandler.passed;
    const sid = await onlySid(store);

    await jobs.destroy(store, sid);

    await scene.service.received.waitFor('logout'); // before the request is answered
    answer.open();
    await unanswered;
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('store.destroy ends a session that this process never saw', async () => {
    const [store, store2] = [new session.MemoryStore(), new session.MemoryStore()];
    Object.assign(store2, { sessions: Reflect.get(store, 'sessions') as object }); // the same rows, another process's handle
    const other = await scene.start({ store: store2, debateSpace: [] });
    const host = await scene.start({ store });
    const browser = await logInTo(other, 'alice');
    // The watched app has learnt its store from somebody else's request.
    await logInTo(host, 'bob');
    const rows = Reflect.get(store, 'sessions') as Record<string, string>;
    const sid = Object.keys(rows).find((id) => rows[id]?.includes('alice')) ?? '';

    await jobs.destroy(store, sid);

    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('store.destroy of a session without a user is silent', async () => {
    const store = new session.MemoryStore();
    const host = await scene.start({ store });
    await logInTo(host, 'alice');
    await jobs.destroy(store, 'no such session');
    expect(await scene.logouts()).toEqual([]);
  });

  it('store.clear ends every session that had a user', async () => {
    const store = new session.MemoryStore();
    const host = await scene.start({ store });
    const browsers = [await logInTo(host, 'alice'), await logInTo(host, 'bob')];
    await new Browser(host.url).get('/whoami');

    await jobs.clear(store);

    for (const browser of browsers) expect(await browser.get('/whoami')).toBe('nobody');
    expect((await scene.logouts()).toSorted()).toEqual(['alice', 'bob']);
  });

  it('a session whose user is taken out of it by the store alone is an end', async () => {
    const store = new session.MemoryStore();
    const host = await scene.start({ store });
    const browser = await logInTo(host, 'alice');
    await jobs.removeUser(store, await onlySid(store));

    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await scene.logouts()).toEqual(['alice']);
  });
});
