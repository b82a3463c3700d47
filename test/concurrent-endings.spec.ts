import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import session from 'express-session';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import type { DebateSpaceSessionOptions } from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import { Gate } from 'debate-space-fixtures/gate.js';
import { startService, using } from 'debate-space-fixtures/service.js';
import { SessionHost, logIn, type Act } from 'debate-space-fixtures/session-host.js';

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

let service: DebateSpaceSimulator;
const hosts: SessionHost[] = [];

beforeEach(async () => {
  service = await startService();
});
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.stop();
  await service.stop();
});

async function startHost(
  act: Act,
  store = new session.MemoryStore(),
  watched: DebateSpaceSessionOptions | false = {},
): Promise<SessionHost> {
  const debateSpace = watched && using(service, { session: watched });
  const host = await SessionHost.start({ store, act, debateSpace: debateSpace || undefined });
  hosts.push(host);
  return host;
}

async function logInTo(host: SessionHost, uid: string): Promise<Browser> {
  const browser = new Browser(host.url);
  await browser.post('/login', { uid });
  return browser;
}

/** Stops the host, which has every verdict fall and delivers what there is; then says who was logged out. */
async function loggedOutBy(host: SessionHost): Promise<string[]> {
  hosts.splice(hosts.indexOf(host), 1);
  await host.stop();
  return service.received.logouts.toSorted();
}

describe('endings beside each other', () => {
  it('two logout clicks at the same time are one logout', async () => {
    const bothIn = new Gate(2);
    const host = await startHost(async (request) => {
      bothIn.open();
      await bothIn.passed;
      await new Promise((resolve) => request.session.destroy(resolve));
    });
    const browser = await logInTo(host, 'alice');

    await Promise.all([browser.post('/act'), browser.post('/act')]);

    await service.received.waitFor('logout');
    expect(await loggedOutBy(host)).toEqual(['alice']);
  });

  it('a logout is reported while another request of the same session streams on', async () => {
    const streaming = new Gate();
    const host = await startHost(async (request, response) => {
      if (request.headers.accept !== 'text/event-stream') {
        await new Promise((resolve) => request.session.destroy(resolve));
        return;
      }
      response.write('data: 1\n\n');
      streaming.open();
      await once(response, 'close');
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

    await service.received.waitFor('logout');
    expect(await browser.get('/whoami')).toBe('nobody');
    leaving.abort();
    expect(await loggedOutBy(host)).toEqual(['alice']);
  });

  it('a slow re-authentication stays silent though other requests of the same session end meanwhile', async () => {
    const [besideIn, regenerated, goOn] = [new Gate(), new Gate(), new Gate()];
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
    const host = await startHost(act, new session.MemoryStore(), { graceMs: 1 });
    const browser = await logInTo(host, 'alice');

    const renewed = browser.post('/act');
    await browser.post('/act?beside=1');
    for (let i = 0; i < 5; i += 1) await new Browser(host.url).get('/whoami'); // time enough for a wrong verdict
    goOn.open();
    await renewed;

    expect(await browser.get('/whoami')).toBe('alice');
    expect(await loggedOutBy(host)).toEqual([]);
  });

  it('a second click that had loaded the session before the first one ended it is the same logout', async () => {
    const store = new SlowReads();
    const host = await startHost(
      (request) => new Promise((resolve) => request.session.destroy(resolve)),
      store,
    );
    const browser = await logInTo(host, 'alice');

    const answer = store.holdBackNextRead();
    const second = browser.post('/act');
    await answer.read;
    await browser.post('/act');
    await service.received.waitFor('logout');
    answer.goOn();
    await second;

    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await loggedOutBy(host)).toEqual(['alice']);
  });

  it('a job that puts another user into a live session, and a logout then, are the ends of both', async () => {
    const store = new session.MemoryStore();
    const host = await startHost(async (request) => {
      const stored = { cookie: request.session.cookie, user: { uid: 'bob' } };
      await new Promise((resolve) => {
        store.set(request.sessionID, stored, resolve);
      });
      await new Promise((resolve) => request.session.destroy(resolve));
    }, store);
    const browser = await logInTo(host, 'alice');
    await browser.post('/act');
    expect(await loggedOutBy(host)).toEqual(['alice', 'bob']);
  });

  it('the same user logging in and out again is reported each time', async () => {
    const host = await startHost((request) => new Promise((resolve) => request.session.destroy(resolve)));
    const browser = await logInTo(host, 'alice');
    for (let i = 0; i < 3; i += 1) {
      await browser.post('/login', { uid: 'alice' });
      await browser.post('/act');
    }
    expect(await loggedOutBy(host)).toEqual(['alice', 'alice', 'alice']);
  });

  it('one of two sessions of a user that ends is reported, and the other one lives on', async () => {
    const host = await startHost((request) => new Promise((resolve) => request.session.destroy(resolve)));
    const [one, other] = [await logInTo(host, 'alice'), await logInTo(host, 'alice')];
    await one.post('/act');
    expect(await other.get('/whoami')).toBe('alice');
    expect(await loggedOutBy(host)).toEqual(['alice']);
  });
});

describe('endings by an administrator', () => {
  it('a job does not wait for an unanswered request of the session that it ends', async () => {
    const [inHandler, answer] = [new Gate(), new Gate()];
    const store = new session.MemoryStore();
    const host = await startHost(async () => {
      inHandler.open();
      await answer.passed;
    }, store);
    const browser = await logInTo(host, 'alice');
    const unanswered = browser.post('/act');
    await inHandler.passed;
    const [sid = ''] = Object.keys(Reflect.get(store, 'sessions') as object);

    await new Promise((resolve) => {
      store.destroy(sid, resolve);
    });

    await service.received.waitFor('logout'); // before the request is answered
    answer.open();
    await unanswered;
    expect(await loggedOutBy(host)).toEqual(['alice']);
  });

  it('store.destroy ends a session that this process never saw', async () => {
    const [store, store2] = [new session.MemoryStore(), new session.MemoryStore()];
    Object.assign(store2, { sessions: Reflect.get(store, 'sessions') as object }); // the same rows, another process's handle
    const elsewhere = await startHost(() => undefined, store2, false);
    const host = await startHost(() => undefined, store);
    const browser = await logInTo(elsewhere, 'alice');
    // The watched app has learnt its store from somebody else's request.
    await logInTo(host, 'bob');
    const rows = Reflect.get(store, 'sessions') as Record<string, string>;
    const sid = Object.keys(rows).find((id) => rows[id]?.includes('alice')) ?? '';

    await new Promise((resolve) => {
      store.destroy(sid, resolve);
    });

    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await loggedOutBy(host)).toEqual(['alice']);
  });

  it('store.destroy of a session without a user is silent', async () => {
    const store = new session.MemoryStore();
    const host = await startHost(() => undefined, store);
    await logInTo(host, 'alice');
    await new Promise((resolve) => {
      store.destroy('no such session', resolve);
    });
    expect(await loggedOutBy(host)).toEqual([]);
  });

  it('store.clear ends every session that had a user', async () => {
    const store = new session.MemoryStore();
    const host = await startHost(() => undefined, store);
    const browsers = [await logInTo(host, 'alice'), await logInTo(host, 'bob')];
    await new Browser(host.url).get('/whoami');

    await new Promise((resolve) => {
      store.clear(resolve);
    });

    for (const browser of browsers) expect(await browser.get('/whoami')).toBe('nobody');
    expect(await loggedOutBy(host)).toEqual(['alice', 'bob']);
  });

  it('a session whose user is taken out of it by the store alone is an end', async () => {
    const store = new session.MemoryStore();
    const host = await startHost(() => undefined, store);
    const browser = await logInTo(host, 'alice');
    const [sid = ''] = Object.keys(Reflect.get(store, 'sessions') as object);
    const stored = await new Promise<session.SessionData>((resolve, reject) => {
      store.get(sid, (error, data) => {
        if (data) resolve(data);
        else reject(error as Error);
      });
    });
    delete stored.user;
    await new Promise((resolve) => {
      store.set(sid, stored, resolve);
    });

    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await loggedOutBy(host)).toEqual(['alice']);
  });
});
