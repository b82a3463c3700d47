/** Runs in the browser. Sets text only through `textContent`, so nothing a user is called becomes markup. */
export const PAGE_SCRIPT = `
const list = document.getElementById('users');
const others = document.getElementById('others');
const othersTitle = document.getElementById('others-title');
const search = document.getElementById('search');
const summary = document.getElementById('summary');
const modes = document.getElementById('modes');
const signIn = document.getElementById('sign-in');
const failure = document.getElementById('failure');
const refusal = document.getElementById('refusal');

function element(name, className, text) {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}

function item(user, present) {
  const node = document.createElement('li');
  const who = element('span', 'who', user.name ?? (user.uid === null ? 'Anonymized user' : user.uid));
  if (user.name !== null && user.uid !== null) who.append(element('span', 'uid', user.uid));
  const count = user.contributions + (user.contributions === 1 ? ' contribution' : ' contributions');
  node.append(who, element('span', 'state', count));
  node.append(present ? element('span', 'state in', '\\u25cf Signed in') : element('span', 'state', '\\u25cb Not signed in'));
  return node;
}

let outside = [];

function showOthers() {
  const wanted = search.value.trim().toLowerCase();
  const found = outside.filter(({ name, uid }) => ((name ?? '') + ' ' + (uid ?? '')).toLowerCase().includes(wanted));
  others.replaceChildren(...found.map((user) => item(user, false)));
  if (wanted !== '' && found.length === 0) others.append(element('li', 'note', 'Nobody.'));
}

search.addEventListener('input', showOthers);

function show(state) {
  for (const radio of modes.querySelectorAll('input')) radio.checked = radio.value === state.mode;
  const present = new Set(state.signedIn);
  const inside = state.users.filter((user) => present.has(user.uid));
  outside = state.users.filter((user) => !present.has(user.uid));
  list.replaceChildren(...inside.map((user) => item(user, true)));
  if (inside.length === 0) list.append(element('li', 'note', 'Nobody.'));
  showOthers();
  othersTitle.textContent = 'Not signed in: ' + outside.length;
  summary.textContent = present.size + ' of ' + state.users.length + ' signed in to the debate';
  failure.textContent = state.mode === 'normal' ? '' : 'A failure is simulated.';
}

function post(path, body) {
  return fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
}

modes.addEventListener('change', ({ target }) => { post('/simulator/mode', { mode: target.value }); });

signIn.addEventListener('submit', async (event) => {
  event.preventDefault();
  const { ok, status } = await post('/simulator/sign-in', { uid: signIn.elements.uid.value });
  refusal.textContent = ok ? '' : status === 409 ? 'This user was deleted.' : 'The debate space refused the sign-in (' + status + ').';
  if (ok) signIn.reset();
});

const events = new EventSource('/simulator/events');
events.onmessage = (message) => show(JSON.parse(message.data));
events.onerror = () => { summary.textContent = 'Connection lost. Trying again \\u2026'; };
`;
