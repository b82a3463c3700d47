/* global clearTimeout, document, EventSource, setTimeout */
// The live view of the debate space, on the right.
import { localTime } from './local-time.js';

const LOG_LENGTH = 6;
const MAX_USERS = 8;
const LATEST_MS = 6000;
let events;
let state;
let hiding;

/** Shows from now on who is there, where a page has the section for it, and whether a failure is simulated. */
export function watchDebate() {
  if (document.body.dataset.simulator && !events) {
    events = new EventSource(document.body.dataset.simulator);
    events.onmessage = ({ data }) => {
      const next = JSON.parse(data);
      if (state) logChanges(state, next);
      state = next;
      showUsers();
    };
    events.onerror = () => {
      const summary = document.getElementById('debate-summary');
      if (summary) summary.textContent = 'The debate space cannot be reached. Trying again …';
    };
  }
}

export function showUsers() {
  if (!state) return;
  const { users, signedIn, mode } = state;
  const you = document.getElementById('here').dataset.uid;
  // You first, then those who are signed in, then the others as they have registered.
  const rank = ({ uid }) => (uid === null ? 2 : uid === you ? 0 : signedIn.includes(uid) ? 1 : 2);
  const ranked = users.toSorted((one, other) => rank(one) - rank(other));
  const failure = document.getElementById('debate-failure');
  const words = mode === 'normal' ? '' : 'A failure is simulated.';
  if (failure.textContent !== words) failure.textContent = words;
  if (!document.getElementById('debate')) return;
  const items = ranked.slice(0, MAX_USERS).map((user) => userItem(user, you));
  if (users.length > MAX_USERS) items.push(element('li', 'quiet', `and ${users.length - MAX_USERS} more`));
  document.getElementById('debate-users').replaceChildren(...items);
  document.getElementById('debate-summary').textContent =
    signedIn.length === 0 ? 'Nobody is signed in.' : `Signed in: ${signedIn.length}`;
}

function userItem(user, you) {
  const inside = state.signedIn.includes(user.uid);
  const count = user.contributions === 1 ? '1 contribution' : `${user.contributions} contributions`;
  const item = document.createElement('li');
  item.append(
    element('span', 'who', nameOf(user) + (user.uid !== null && user.uid === you ? ' (you)' : '')),
    element('span', 'quiet', count),
    element('span', inside ? 'in' : 'quiet', inside ? '● Signed in' : '○ Not signed in'),
  );
  return item;
}

function logChanges(before, after) {
  const now = new Map(after.users.map((user) => [user.id, user]));
  for (const user of before.users) {
    if (!now.has(user.id)) logged(`${nameOf(user)} was deleted.`);
    else if (user.uid !== null && now.get(user.id).uid === null) logged(`${nameOf(user)} was anonymized.`);
  }
  const name = (uid) => nameOf([...after.users, ...before.users].find((user) => user.uid === uid) ?? { uid });
  for (const uid of after.signedIn) if (!before.signedIn.includes(uid)) logged(`${name(uid)} has joined.`);
  for (const uid of before.signedIn) if (!after.signedIn.includes(uid)) logged(`${name(uid)} has left.`);
}

function logged(text) {
  const log = document.getElementById('debate-log');
  if (!log) return;
  log.querySelector('.quiet')?.remove();
  log.append(element('li', '', `${localTime(new Date())}: ${text}`));
  while (log.children.length > LOG_LENGTH) log.firstChild.remove();
  // On a phone the list is below the page: for a moment, the latest line shows at the edge of the screen, too.
  const latest = document.getElementById('debate-latest');
  latest.textContent = text;
  latest.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (latest.hidden = true), LATEST_MS);
}

function nameOf(user) {
  return user.name ?? user.uid ?? 'Anonymized user';
}

function element(name, className, text) {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}
