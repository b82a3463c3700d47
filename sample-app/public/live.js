/* global document, EventSource, sessionStorage */
// The pages work without this script. Only the debate space on the right and the progress of erasures are not live then.

const LOG_LENGTH = 8;
const debate = document.getElementById('debate');
if (debate) followDebate(debate.dataset.simulator);
for (const element of document.querySelectorAll('[data-events]')) followErasure(element);

/** Shows who is signed in. The tab keeps the last state and the log, so that a logout shows on the next page. */
function followDebate(simulator) {
  const log = JSON.parse(sessionStorage.getItem('debate-log') ?? '[]');
  let state = JSON.parse(sessionStorage.getItem('debate-state') ?? 'null');
  const list = document.getElementById('debate-log');
  const summary = document.getElementById('debate-summary');
  summary.textContent = 'Connecting …';
  list.append(...log.map(lineOf));
  const events = new EventSource(`${simulator}/simulator/events`);
  events.onmessage = ({ data }) => {
    const next = JSON.parse(data);
    for (const change of state ? changes(state, next) : []) {
      log.push(`${new Date().toLocaleTimeString('en-GB')}: ${change}`);
      list.append(lineOf(log.at(-1)));
    }
    state = next;
    log.splice(0, log.length - LOG_LENGTH);
    while (list.children.length > LOG_LENGTH) list.firstChild.remove();
    sessionStorage.setItem('debate-state', data);
    sessionStorage.setItem('debate-log', JSON.stringify(log));
    const names = state.signedIn.map((uid) => nameOf(state, uid));
    const failure = state.mode === 'normal' ? '' : ' A failure is simulated.';
    summary.textContent = `${names.length === 0 ? 'Nobody is signed in.' : `● Signed in: ${names.join(', ')}`}${failure}`;
  };
  events.onerror = () => {
    summary.textContent = 'The debate space cannot be reached. Trying again …';
  };
}

function changes(before, after) {
  const now = new Map(after.users.map((user) => [user.id, user]));
  const gone = before.users.filter(({ id }) => !now.has(id));
  const anonymized = before.users.filter(({ id, uid }) => uid !== null && now.get(id)?.uid === null);
  return [
    ...gone.map(({ uid }) => `${nameOf(before, uid)} was deleted.`),
    ...anonymized.map(({ uid }) => `${nameOf(before, uid)} was anonymized.`),
    ...without(after.signedIn, before.signedIn).map((uid) => `${nameOf(after, uid)} has joined.`),
    ...without(before.signedIn, after.signedIn).map((uid) => `${nameOf(before, uid)} has left.`),
  ];
}

function without(uids, others) {
  return uids.filter((uid) => !others.includes(uid));
}

function nameOf({ users }, uid) {
  return users.find((user) => user.uid === uid)?.name ?? uid ?? 'An anonymized user';
}

function lineOf(text) {
  const line = document.createElement('li');
  line.textContent = text;
  return line;
}

/** `data-show` names the part of the erasure that an element shows, `data-when` the states that show the element. */
function followErasure(element) {
  const events = new EventSource(element.dataset.events);
  events.addEventListener('end', () => events.close());
  events.onmessage = ({ data }) => {
    const erasure = JSON.parse(data);
    for (const node of element.querySelectorAll('[data-show]')) {
      const value = node.dataset.show.split('.').reduce((part, name) => part[name], erasure);
      if (node.localName === 'progress') Object.assign(node, { max: erasure.total || 1, value });
      else if (node.textContent !== String(value)) node.textContent = value; // else it is read aloud again
    }
    for (const node of element.querySelectorAll('[data-when]'))
      node.hidden = !node.dataset.when.split(' ').includes(erasure.state);
  };
}
