import { Latch } from '../latch.js';
import { jobs } from '../hosts/session-jobs.js';
import type { Store } from 'express-session';
import type { Handling } from './handling.js';
import { longerThanTheGrace, SHORT_GRACE_MS, type Actor, type Scene } from './scene.js';
import {
  destroy,
  nothing,
  onFastify,
  onExpress,
  removeUserAndSave,
  renew,
  withoutPassport,
  type Act,
  type Row,
} from './rows.js';

const scene = (
  name: string,
  reports: readonly string[],
  play: (scene: Scene) => Promise<void>,
  more: Partial<Row> = {},
): Row => ({
  name,
  ends: reports.includes('alice'),
  reports,
  act: nothing,
  play,
  ...more,
});

/** A handler that waits. @returns when it is entered, and how to have it go on */
function waiting(
  on: Scene,
  name: string,
  before: Act = nothing,
  after: Act = nothing,
): readonly [entered: Promise<void>, goOn: () => void] {
  const [entered, goOn] = [new Latch(), new Latch()];
  on.on(name, async (handler) => {
    await before(handler);
    entered.open();
    await goOn.passed;
    await after(handler);
  });
  return [
    entered.passed,
    () => {
      goOn.open();
    },
  ];
}

/** Two requests of alice's browser, one of which is under way while the other one comes and goes. */
const beside =
  (slow: { readonly before?: Act; readonly after?: Act }, quick: Act) =>
  async (on: Scene): Promise<void> => {
    const alice = await on.enter('alice');
    const [entered, goOn] = waiting(on, 'slow', slow.before, slow.after);
    on.on('quick', quick);
    const answer = alice.request('slow');
    await entered;
    await alice.request('quick');
    await longerThanTheGrace();
    goOn();
    await answer;
  };

const beginStream: Act = (handler) => {
  handler.hijack();
  handler.raw.write('first ');
};
const endStream: Act = (handler) => {
  handler.raw.end('last');
};

const fifty = Array.from({ length: 50 }, (_, n) => `user-${n}`);
const enterAll = (on: Scene, uids: readonly string[]): Promise<Actor[]> =>
  Promise.all(uids.map((uid) => on.enter(uid)));

const allSids = (store: Handling['store']): Promise<readonly string[]> =>
  new Promise((resolve) => {
    (store as Store).all?.((_: unknown, all) => {
      resolve(Object.keys(all ?? {}));
    });
  });

/** What several browsers, several requests of one browser, and jobs do at the same time. */
export const scenes: readonly Row[] = [
  scene(
    'a renewal that takes longer than any grace, with an ordinary request in between',
    [],
    beside(
      { before: (handler) => handler.regenerate(), after: (handler) => handler.logIn('alice') },
      nothing,
    ),
    { graceMs: SHORT_GRACE_MS },
  ),
  scene('a renewal while an ordinary request is under way', [], beside({}, renew)),
  scene(
    'a renewal while an ordinary request is under way, whose answer sets the old cookie again',
    ['alice'],
    beside({}, renew),
    { needs: 'rolling', ...onExpress },
  ),
  scene(
    'a renewal while a stream is open that has set the old cookie before',
    [],
    beside({ before: beginStream, after: endStream }, renew),
    { needs: 'rolling', ...onExpress },
  ),
  ...[
    onExpress,
    { ...onFastify, leaves: [] }, // the slow request saves its session back
  ].map((more) =>
    scene(
      'a logout while an ordinary request is under way, at its own answer',
      ['alice'],
      async (on) => {
        const alice = await on.enter('alice');
        const [entered, goOn] = waiting(on, 'slow');
        on.on('out', destroy);
        const answer = alice.request('slow');
        await entered;
        await alice.request('out');
        await on.reported();
        goOn();
        await answer;
      },
      more,
    ),
  ),
  scene(
    'a job while a request of its session is under way, before that is answered',
    ['alice'],
    async (on) => {
      const alice = await on.enter('alice');
      const [entered, goOn] = waiting(on, 'slow');
      const answer = alice.request('slow');
      await entered;
      const sid = await alice.sid();
      await on.job((store) => jobs.destroy(store, sid));
      await on.reported();
      goOn();
      await answer;
    },
    { later: true, ...onExpress },
  ),
  scene('a handler that logs out, and answers only long after it', ['alice'], async (on) => {
    const alice = await on.enter('alice');
    const [entered, goOn] = waiting(on, 'out', destroy);
    const answer = alice.request('out');
    await entered;
    await longerThanTheGrace();
    goOn();
    await answer;
    on.answered();
  }),
  scene('two logouts of one browser at once', ['alice'], async (on) => {
    const alice = await on.enter('alice');
    const both = new Latch(2);
    on.on('out', async (handler) => {
      both.open();
      await both.passed;
      await handler.destroy();
    });
    await Promise.all([alice.request('out'), alice.request('out')]);
    on.answered();
  }),
  scene(
    'a second click that has loaded the session before the first one ends it',
    ['alice'],
    beside({ after: (handler) => handler.destroy().catch(nothing) }, destroy),
  ),
  scene(
    'a logout by removing the user, twice at once',
    ['alice'],
    beside({ after: removeUserAndSave }, removeUserAndSave),
    withoutPassport,
  ),
  scene('a client that leaves, and a handler that logs out then', ['alice'], async (on) => {
    const alice = await on.enter('alice');
    const [entered, done] = [new Latch(), new Latch()];
    on.on('out', async (handler) => {
      const closed = handler.closed();
      entered.open();
      await closed;
      await handler.destroy();
      done.open();
    });
    const leaving = new AbortController();
    const left = alice.request('out', leaving.signal).catch(nothing);
    await entered.passed;
    leaving.abort();
    await Promise.all([left, done.passed]);
  }),
  scene(
    'a login and a logout in one request',
    ['alice'],
    async (on) => {
      const guest = await on.enter();
      on.on('both', async (handler) => {
        await handler.logIn('alice');
        await handler.save();
        await handler.destroy();
      });
      await guest.request('both');
      on.answered();
    },
    { leaves: [] },
  ),
  scene('a login in place of a guest, whose session is regenerated', [], async (on) => {
    const guest = await on.enter();
    on.on('in', renew);
    await guest.request('in');
  }),
  scene('an answered logout while another request streams on', ['alice'], async (on) => {
    const alice = await on.enter('alice');
    const [entered, goOn] = waiting(
      on,
      'stream',
      (handler) => {
        handler.hijack();
        handler.raw.write('first ');
      },
      (handler) => {
        handler.raw.end('last');
      },
    );
    on.on('out', destroy);
    const answer = alice.request('stream');
    await entered;
    await alice.request('out');
    await on.reported();
    goOn();
    await answer;
  }),
  scene('one of two sessions of a user', ['alice'], async (on) => {
    const [one] = await enterAll(on, ['alice', 'alice']);
    on.on('out', destroy);
    await one?.request('out');
    on.answered();
  }),
  scene('all sessions of a user, by an administrator at the store', ['bob'], async (on) => {
    const admin = await on.enter('admin');
    const browsers = await enterAll(on, ['bob', 'bob', 'bob']);
    const sids = await Promise.all(browsers.map((browser) => browser.sid()));
    on.on('kill', async ({ store }) => {
      for (const sid of sids) await jobs.destroy(store, sid);
    });
    await admin.request('kill');
  }),
  scene('log out everywhere: the other sessions at the store, then its own', ['alice'], async (on) => {
    const [own, ...others] = await enterAll(on, ['alice', 'alice', 'alice']);
    const sids = await Promise.all(others.map((browser) => browser.sid()));
    on.on('everywhere', async (handler) => {
      await Promise.all(sids.map((sid) => jobs.destroy(handler.store, sid)));
      await handler.destroy();
    });
    await own?.request('everywhere');
    on.answered();
  }),
  scene('a login that ends the other sessions of its user', ['alice'], async (on) => {
    const other = await on.enter('alice');
    const guest = await on.enter();
    const sid = await other.sid();
    on.on('in', async (handler) => {
      await jobs.destroy(handler.store, sid);
      await renew(handler);
    });
    await guest.request('in');
  }),
  scene('a job that removes the row of a session whose id has been renewed', [], async (on) => {
    const alice = await on.enter('alice');
    const old = await alice.sid();
    on.on('renew', renew);
    await alice.request('renew');
    await on.job((store) => jobs.destroy(store, old));
  }),
  scene(
    'a job that removes the old row of a session whose id rotates with a grace',
    [],
    async (on) => {
      const alice = await on.enter('alice');
      const old = await alice.sid();
      on.on('rotate', (handler) => {
        const { request } = handler.express ?? {};
        (request?.sessionStore as unknown as { generate(request: object): void }).generate(request ?? {});
        return handler.logIn('alice');
      });
      await alice.request('rotate');
      await on.job((store) => jobs.destroy(store, old));
    },
    onExpress,
  ),
  scene(
    'a job that puts bob into the session of alice, and a logout then',
    ['alice', 'bob'],
    async (on) => {
      const alice = await on.enter('alice');
      const sid = await alice.sid();
      on.on('out', async (handler) => {
        await jobs.replaceUser(handler.store, sid, 'bob');
        await handler.destroy();
      });
      await alice.request('out');
    },
    { leaves: ['alice'], ...onExpress, ...withoutPassport },
  ),
  scene('a job that removes a row that has ended by its cookie', ['alice'], async (on) => {
    const alice = await on.enter('alice');
    const sid = await alice.sid();
    on.on('leave', (handler) => {
      handler.clearCookie();
    });
    await alice.request('leave');
    await on.reported();
    await on.job((store) => jobs.destroy(store, sid));
  }),
  scene(
    'a login form that is sent twice, and a job that removes what no browser has',
    [],
    async (on) => {
      const guest = await on.enter();
      on.on('visit', ({ session }) => Object.assign(session, { basket: 1 }));
      await guest.request('visit');
      const both = new Latch(2);
      on.on('in', async (handler) => {
        both.open();
        await both.passed;
        await renew(handler);
      });
      await Promise.all([guest.request('in'), guest.request('in')]);
      on.on('page', nothing);
      await guest.request('page');
      const kept = await guest.sid();
      await on.job(async (store) => {
        for (const sid of await allSids(store)) if (sid !== kept) await jobs.destroy(store, sid);
      });
    },
    { fails: true },
  ),
  scene('strangers who send the id of a session in a cookie that the host clears', [], async (on) => {
    const alice = await on.enter('alice');
    const stranger = await on.enter();
    const sid = await alice.sid();
    on.on('clear', (handler) => {
      handler.header('Set-Cookie', `${handler.cookieName}=; Max-Age=0; Path=/`);
    });
    on.on('theme', (handler) => {
      handler.header('Set-Cookie', 'theme=; Max-Age=0; Path=/');
    });
    const values = [`s%3A${sid}.AAAA`, `${sid}.AAAA`, sid, `s%3A${sid}`, `x${sid}`];
    for (const value of values)
      for (const path of ['/before-sessions', '/act']) {
        stranger.browser.further = ['connect.sid', 'sessionId', 'theme'].map((name) => `${name}=${value}`);
        for (const name of ['clear', 'theme']) await stranger.browser.post(`${path}?${name}`);
      }
  }),
  scene('a login and a logout of the same user, again and again', ['alice'], async (on) => {
    const alice = await on.enter('alice');
    on.on('in', (handler) => handler.logIn('alice'));
    on.on('out', destroy);
    await alice.request('out');
    for (const count of [2, 3]) {
      await alice.request('in');
      await alice.request('out');
      await on.reported(count);
    }
  }),
  scene('fifty logouts of fifty users at once', fifty, async (on) => {
    const browsers = await enterAll(on, fifty);
    on.on('out', destroy);
    await Promise.all(browsers.map((browser) => browser.request('out')));
    on.answered();
  }),
  scene('fifty renewals of fifty users at once, with a pause', [], async (on) => {
    const browsers = await enterAll(
      on,
      fifty.map(() => 'alice'),
    );
    const half = new Latch(50);
    on.on('renew', async (handler) => {
      await handler.regenerate();
      half.open();
      await half.passed;
      await handler.logIn('alice');
    });
    await Promise.all(browsers.map((browser) => browser.request('renew')));
  }),
  scene(
    'store.clear by a job, of fifty users',
    fifty,
    async (on) => {
      await enterAll(on, fifty);
      await on.job((store) => jobs.clear(store));
    },
    { fails: true },
  ),
  scene(
    'a renewal of one browser at once with a logout of another one of the same user',
    ['alice'],
    async (on) => {
      const [one, other] = await enterAll(on, ['alice', 'alice']);
      const [entered, goOn] = waiting(
        on,
        'renew',
        (handler) => handler.regenerate(),
        (handler) => handler.logIn('alice'),
      );
      on.on('out', destroy);
      const answer = one?.request('renew');
      await entered;
      await other?.request('out');
      goOn();
      await answer;
    },
  ),
  scene(
    'a hook of the host that renews, while an ordinary request is under way',
    [],
    async (on) => {
      const alice = await on.enter('alice');
      const [entered, goOn] = waiting(on, 'slow');
      const answer = alice.request('slow');
      await entered;
      on.on('in=preParsing', renew);
      await alice.request('in=preParsing');
      goOn();
      await answer;
    },
    onFastify,
  ),
];
