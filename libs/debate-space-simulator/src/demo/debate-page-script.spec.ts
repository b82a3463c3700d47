import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { PAGE_SCRIPT } from './debate-page-script.js';
import type { DebateState } from './debate-state.js';

/** As much of an element as the script uses. It has no `innerHTML`, which the script must not need. */
class FakeElement {
  className = '';
  textContent = '';
  children: FakeElement[] = [];

  append(...children: FakeElement[]): void {
    this.children.push(...children);
  }

  replaceChildren(...children: FakeElement[]): void {
    this.children = children;
  }

  get texts(): string[] {
    return [this.textContent, ...this.children.flatMap((child) => child.texts)].filter((text) => text !== '');
  }
}

/** Runs the page's script and hands out its list, its summary and its connection. */
function runPage() {
  const radios = ['normal', 'down'].map((value) => ({ value, checked: false }));
  const listeners: { change?: (event: { target: { value: string } }) => void } = {};
  const modes = {
    querySelectorAll: () => radios,
    addEventListener: (name: 'change', listener: (typeof listeners)['change']) => {
      listeners[name] = listener;
    },
  };
  const form: { submit?: (event: { preventDefault(): void }) => Promise<void>; resets: number } = {
    resets: 0,
  };
  const signIn = {
    elements: { uid: { value: '' } },
    reset: () => (form.resets += 1),
    addEventListener: (name: 'submit', listener: (typeof form)['submit']) => {
      form[name] = listener;
    },
  };
  const [users, others, othersTitle, summary, failure, refusal] = Array.from(
    { length: 6 },
    () => new FakeElement(),
  ) as [FakeElement, FakeElement, FakeElement, FakeElement, FakeElement, FakeElement];
  const search = {
    value: '',
    onInput: (): void => undefined,
    addEventListener: (_: 'input', listener: () => void) => (search.onInput = listener),
  };
  const elements = {
    users,
    search,
    others,
    'others-title': othersTitle,
    summary,
    failure,
    refusal,
    modes,
    'sign-in': signIn,
  };
  const sent: unknown[] = [];
  const service = { status: 200 };
  const fetch = async (...request: unknown[]) => {
    sent.push(request);
    return Promise.resolve({ ok: service.status === 200, status: service.status });
  };
  const document = {
    getElementById: (id: keyof typeof elements) => elements[id],
    createElement: () => new FakeElement(),
  };
  const connection: { onmessage?: (message: { data: string }) => void; onerror?: () => void } = {};
  // A class that returns another object: the script's handlers land where the test can call them.
  const EventSource = function () {
    return connection;
  };
  runInNewContext(PAGE_SCRIPT, { document, EventSource, fetch });
  const show = (state: DebateState) => connection.onmessage?.({ data: JSON.stringify(state) });
  const find = (text: string): void => {
    search.value = text;
    search.onInput();
  };
  const choose = (value: string) => listeners.change?.({ target: { value } });
  const enter = async (uid: string, status: number) => {
    service.status = status;
    signIn.elements.uid.value = uid;
    await form.submit?.({ preventDefault: () => undefined });
    return { refusal: refusal.textContent, resets: form.resets };
  };
  return {
    users,
    others,
    othersTitle,
    summary,
    failure,
    radios,
    sent,
    find,
    choose,
    show,
    enter,
    fail: () => connection.onerror?.(),
  };
}

describe('the script of the page', () => {
  it('lists the users, as text, with who is in the debate', () => {
    const page = runPage();
    page.show({
      mode: 'down',
      signedIn: ['u-1'],
      users: [
        { id: 1, uid: 'u-1', name: '<b>F</b>', contributions: 1 },
        { id: 2, uid: 'u-2', name: null, contributions: 0 },
        { id: 3, uid: null, name: null, contributions: 3 },
      ],
    });
    expect(page.users.children.map(({ texts }) => texts)).toEqual([
      ['<b>F</b>', 'u-1', '1 contribution', '● Signed in'],
    ]);
    expect(page.othersTitle.textContent).toBe('Not signed in: 2');
    expect(page.others.children.map(({ texts }) => texts)).toEqual([
      ['u-2', '0 contributions', '○ Not signed in'],
      ['Anonymized user', '3 contributions', '○ Not signed in'],
    ]);
    expect(page.summary.textContent).toBe('1 of 3 signed in to the debate');
    expect(page.failure.textContent).toBe('A failure is simulated.');
    expect(page.radios.map(({ checked }) => checked)).toEqual([false, true]);
  });

  it('finds those who are not signed in by name or uid, also when the list changes', () => {
    const page = runPage();
    const users = [
      { id: 1, uid: 'u-1', name: 'Ada Byron', contributions: 0 },
      { id: 2, uid: 'u-2', name: null, contributions: 0 },
    ];
    page.show({ mode: 'normal', signedIn: ['u-1'], users });
    page.find(' BYR');
    expect(page.others.children.map(({ texts }) => texts)).toEqual([['Nobody.']]);
    page.show({ mode: 'normal', signedIn: [], users });
    expect(page.others.children.map(({ texts }) => texts[0])).toEqual(['Ada Byron']);
    page.find('u-2');
    expect(page.others.children.map(({ texts }) => texts[0])).toEqual(['u-2']);
    page.find('');
    expect(page.others.children).toHaveLength(2);
  });

  it('signs a user in, and says why the service refuses one', async () => {
    const page = runPage();
    expect(await page.enter('gone', 409)).toEqual({ refusal: 'This user was deleted.', resets: 0 });
    expect(await page.enter('u-1', 503)).toEqual({
      refusal: 'The debate space refused the sign-in (503).',
      resets: 0,
    });
    expect(await page.enter('u-1', 200)).toEqual({ refusal: '', resets: 1 });
    expect(page.sent.at(-1)).toMatchObject(['/simulator/sign-in', { method: 'POST', body: '{"uid":"u-1"}' }]);
  });

  it('switches the mode', () => {
    const page = runPage();
    page.choose('slow');
    expect(page.sent).toMatchObject([['/simulator/mode', { method: 'POST', body: '{"mode":"slow"}' }]]);
  });

  it('says so when the connection is lost', () => {
    const page = runPage();
    page.fail();
    expect(page.summary.textContent).toContain('Connection lost');
  });
});
