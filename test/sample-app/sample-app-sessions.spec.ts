import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { DebateSpaceErasures } from 'nestjs-debate-space';
import { erasurePath } from '../../sample-app/src/admin/erasure-path.js';
import type { Browser } from '../../sample-app/src/demo/browser.js';
import { Sessions } from '../../sample-app/src/session/sessions.js';
import { RunningSampleApp } from 'debate-space-fixtures/running-sample-app.js';

let host: RunningSampleApp;

beforeEach(async () => {
  host = await RunningSampleApp.start();
});
afterEach(async () => {
  await host.close();
});

it('forgets the sessions of those who only open the login page, and keeps the others', async () => {
  const sessions = host.app.get(Sessions);
  const admin = await host.loggedIn('admin');
  for (let visitor = 0; visitor < 20; visitor += 1) await fetch(`${host.url}/login`);
  const count = async (): Promise<number> =>
    Object.keys((await promisify(sessions.all.bind(sessions))()) ?? {}).length;
  expect(await count()).toBeGreaterThanOrEqual(21);
  const later = Date.now() + 60 * 60_000;
  const clock = jest.spyOn(Date, 'now').mockReturnValue(later);
  try {
    sessions.prune();
    expect(await count()).toBe(1);
    expect(await admin.open('/admin')).toContain('Administration');
  } finally {
    clock.mockRestore();
  }
});

describe('the progress stream of a bulk erasure', () => {
  /** An erasure that goes on as long as the debate space is away. */
  async function endless(): Promise<void> {
    await host.sim.goDown();
    const erasures = host.app.get(DebateSpaceErasures);
    await erasures.requestMany(['ada', 'ben'], { mode: 'delete', reference: 'leavers' });
  }

  /** The stream, behind its first event. */
  async function watching(browser: Browser): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    const response = await browser.request(erasurePath('leavers', 'events'));
    if (!response.body) throw new Error('There is no stream.');
    const reader = response.body.getReader();
    await reader.read();
    return reader;
  }

  /** Everything that still comes, up to the end. */
  async function rest(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
    const chunks: Uint8Array[] = [];
    for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value);
    return Buffer.concat(chunks).toString();
  }

  it('ends when its session logs out, while the erasure goes on', async () => {
    await endless();
    const admin = await host.loggedIn('admin');
    const stream = await watching(admin);
    await admin.submit('/logout');
    expect(await rest(stream)).toContain('event: end');
    const { waiting } = await host.app.get(DebateSpaceErasures).status('leavers');
    expect(waiting).toBe(2);
  });

  it('ends when the administrator has requested their own erasure in another browser', async () => {
    await endless();
    const stream = await watching(await host.loggedIn('admin'));
    await (await host.loggedIn('admin')).submit('/me/delete', { confirmation: 'admin' });
    expect(await rest(stream)).toContain('event: end');
  });

  it('goes on when somebody else logs out', async () => {
    await endless();
    const admin = await host.loggedIn('admin');
    const stream = await watching(admin);
    await (await host.loggedIn('ada')).submit('/logout');
    await admin.submit(erasurePath('leavers', 'cancel'));
    expect(await rest(stream)).toContain('"state":"canceled"');
  });
});

describe('a user who asks for their own erasure', () => {
  it.each(['anonymize', 'delete'])(
    'is logged out of all their browsers, and nobody else is: %s',
    async (wish) => {
      const [laptop, phone, ben] = [
        await host.loggedIn('ada'),
        await host.loggedIn('ada'),
        await host.loggedIn('ben'),
      ];
      const { status } = await laptop.submit(`/me/${wish}`, { confirmation: 'ada' });
      expect(status).toBe(303);
      expect(await laptop.open('/')).toContain('>Log in</h1>');
      expect(await phone.open('/')).toContain('>Log in</h1>');
      expect(await ben.open('/')).toContain('You are logged in as Ben');
    },
  );
});

/** What the app answers to a request to this host name. */
async function answerTo(name: string, path = '/login'): Promise<{ status?: number; page: string }> {
  const request = get(new URL(path, host.url), { headers: { host: name } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode, page: await text(response) };
}

describe('a request to another host name', () => {
  it('is refused, such as the name of a site that resolves to this machine', async () => {
    for (const name of ['rebound.example', 'localhost.rebound.example:3000', '127.0.0.1.nip.io', 'x y']) {
      const { status, page } = await answerTo(name);
      expect([name, status, page.includes('_csrf')]).toEqual([name, 421, false]);
    }
    expect((await answerTo('rebound.example', '/style.css')).status).toBe(421);
    for (const name of ['localhost', 'LOCALHOST:3000', '127.0.0.1', '[::1]:3000'])
      expect([name, (await answerTo(name)).status]).toEqual([name, 200]);
  });
});

describe('the host names of the environment', () => {
  afterEach(() => {
    delete process.env.HOST;
    delete process.env.ALLOWED_HOSTS;
  });

  it.each([
    [{ HOST: '192.0.2.7' }, '192.0.2.7:3000'],
    [{ HOST: '2001:db8::7' }, '[2001:db8::7]:3000'],
    [{ HOST: '0.0.0.0', ALLOWED_HOSTS: 'app.example, Other.example' }, 'other.example'],
  ])('are answered: %p', async (environment, name) => {
    await host.close();
    Object.assign(process.env, environment);
    host = await RunningSampleApp.start();
    const [own, other] = [await answerTo(name), await answerTo('rebound.example')];
    expect([own.status, other.status]).toEqual([200, 421]);
  });
});

describe('an erasure whose reference is a path of its own', () => {
  it('is reached from the list', async () => {
    await host.sim.goDown();
    const erasures = host.app.get(DebateSpaceErasures);
    const admin = await host.loggedIn('admin');
    for (const reference of ['.', '..', 'a/b', '../users', '?x=1#y', 'ä %2F']) {
      await erasures.requestMany(['ada', 'ben'], { mode: 'delete', reference });
      const [, link = ''] =
        /<th scope="row"><a href="([^"]+)"/.exec(await admin.open('/admin/erasures')) ?? [];
      const page = await admin.open(link.replaceAll('&amp;', '&'));
      expect(page).toContain('<progress');
      const [, cancel = ''] = /action="([^"]+cancel[^"]*)"/.exec(page) ?? [];
      expect((await admin.submit(cancel.replaceAll('&amp;', '&'))).status).toBe(303);
      expect((await erasures.status(reference)).state).toBe('canceled');
      const [, events = ''] = /data-events="([^"]+)"/.exec(page) ?? [];
      const stream = await admin.request(events.replaceAll('&amp;', '&'));
      expect(await stream.text()).toContain('event: end');
    }
  });
});

describe('the user list', () => {
  it('shows all users when the date of one cannot be read', async () => {
    const created_at = { ada: 'about <b>noon</b>', ben: '2026-11-21T14:05:09Z', cleo: null };
    const body = Object.entries(created_at).map(([uid, date]) => ({ uid, created_at: date }));
    host.sim.faults.add({ operation: 'list', kind: 'body', body });
    const response = await (await host.loggedIn('admin')).request('/admin/users');
    const page = await response.text();
    expect(response.status).toBe(200);
    for (const text of ['ada', 'ben', 'cleo', 'about &lt;b&gt;noon&lt;/b&gt;', '21 Nov 2026, 14:05:09 UTC']) {
      expect(page).toContain(text);
    }
  });
});
