/* global document, DOMParser, EventSource, FormData, URLSearchParams, history, window */
// Two things that a page without JavaScript lacks: the live view of the debate space, and forms that change the left
// half alone, so that a logout here can be watched over there.

const debate = document.getElementById('debate');
const LOG_LENGTH = 6;
let state;

function here() {
  return document.getElementById('here');
}

function element(name, className, text) {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}

function nameOf(user) {
  return user.name ?? user.uid ?? 'Anonymised user';
}

function showUsers() {
  const items = state.users.map((user) => {
    const inside = state.signedIn.includes(user.uid);
    const you = user.uid !== null && user.uid === here().dataset.uid ? ' (you)' : '';
    const count = user.contributions === 1 ? '1 contribution' : `${user.contributions} contributions`;
    const item = document.createElement('li');
    item.append(
      element('span', 'who', nameOf(user) + you),
      element('span', 'quiet', count),
      element('span', inside ? 'in' : 'quiet', inside ? '● Signed in' : '○ Not signed in'),
    );
    return item;
  });
  document.getElementById('debate-users').replaceChildren(...items);
  document.getElementById('debate-summary').textContent =
    state.signedIn.length === 0 ? 'Nobody is signed in.' : `Signed in: ${state.signedIn.length}`;
}

function logged(text) {
  const log = document.getElementById('debate-log');
  log.querySelector('.quiet')?.remove();
  log.append(element('li', '', `${new Date().toLocaleTimeString()} ${text}`));
  while (log.children.length > LOG_LENGTH) log.firstChild.remove();
}

function logChanges(before, after) {
  const name = (uid) => nameOf([...after.users, ...before.users].find((user) => user.uid === uid) ?? { uid });
  for (const uid of after.signedIn) if (!before.signedIn.includes(uid)) logged(`${name(uid)} has joined.`);
  for (const uid of before.signedIn) if (!after.signedIn.includes(uid)) logged(`${name(uid)} has left.`);
}

if (debate.dataset.events) {
  const events = new EventSource(debate.dataset.events);
  events.onmessage = ({ data }) => {
    const next = JSON.parse(data);
    if (state) logChanges(state, next);
    state = next;
    showUsers();
  };
  events.onerror = () => {
    document.getElementById('debate-summary').textContent =
      'The debate space cannot be reached. Trying again …';
  };
}

/** Puts the left half of another page in the place of this one's. */
function replaceHere(html, url) {
  const page = new DOMParser().parseFromString(html, 'text/html');
  here().replaceWith(document.adoptNode(page.getElementById('here')));
  document.title = page.title;
  history.replaceState(null, '', url);
  here().focus();
  if (state) showUsers();
}

document.addEventListener('submit', async (event) => {
  const form = event.target;
  event.preventDefault();
  const button = form.querySelector('button');
  button.disabled = true;
  try {
    const body = new URLSearchParams(new FormData(form));
    const response = await fetch(form.action, { method: 'POST', body, headers: { Accept: 'text/html' } });
    // A failed request has no page of its own to go back to.
    replaceHere(await response.text(), response.redirected ? response.url : window.location.href);
  } catch {
    // Never twice: what became of the request, the start page shows.
    window.location.assign('/');
  }
});
