import { DEMO_MODES } from './demo-mode.js';

const MODES = Object.entries(DEMO_MODES)
  .map(([mode, words]) => `<label><input type="radio" name="mode" value="${mode}"> ${words}</label>`)
  .join('\n');

/** The page at `/`. @param nonce for the content security policy, Base64 */
export function debatePage(applicationName: string, nonce: string): string {
  const title = `Debate space of ${escapeHtml(applicationName)}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${PAGE_STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p class="note">A simulator for tests and demos. Nothing here is kept.</p>
<p id="summary" role="status">Connecting …</p>
<p id="failure" role="status"></p>
<fieldset id="modes">
<legend>Simulated failures</legend>
${MODES}
</fieldset>
<form id="sign-in">
<label for="uid">Sign in to the debate space, by uid</label>
<input id="uid" name="uid" required maxlength="255" autocomplete="off" spellcheck="false">
<button>Sign in</button>
<p id="refusal" role="alert"></p>
</form>
<h2 id="users-title">Signed in</h2>
<ul id="users" aria-labelledby="users-title"></ul>
<details>
<summary id="others-title">Not signed in</summary>
<label for="search">Find</label>
<input id="search" type="search" placeholder="Name or uid" autocomplete="off" spellcheck="false">
<ul id="others" aria-labelledby="others-title"></ul>
</details>
<noscript><p>This page needs JavaScript. <a href="/simulator/state">The state as JSON</a></p></noscript>
</main>
<script nonce="${nonce}">${PAGE_SCRIPT}</script>
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

export const PAGE_STYLE = `
:root { color-scheme: light dark; --line: #8886; --in: #1a7f37; --failing: #b42318; background: Canvas; }
@media (prefers-color-scheme: dark) { :root { --in: #56d364; --failing: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 40rem; margin: 0 auto; padding: 1.5rem 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.125rem; margin: 1.5rem 0 .5rem; }
.note { margin: .25rem 0 1rem; opacity: .75; }
fieldset { margin: 1rem 0; padding: .25rem 1rem .75rem; border: 1px solid var(--line); border-radius: .375rem; }
legend { font-weight: 600; }
label { display: flex; gap: .5rem; align-items: baseline; padding: .25rem 0; }
#summary, #failure { font-weight: 600; }
#failure, #refusal { color: var(--failing); }
#sign-in { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; }
#sign-in > label, #refusal { flex: 1 0 100%; margin: 0; }
#sign-in > input { flex: 1; min-width: 0; }
#search { width: 100%; margin-bottom: .75rem; }
#sign-in > input, #search, button { font: inherit; min-height: 2.75rem; padding: .25rem .75rem; }
summary { padding: .75rem 0; font-weight: 600; cursor: pointer; }
ul { list-style: none; margin: 0; padding: 0; border-top: 1px solid var(--line); }
li { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: .75rem 0; border-bottom: 1px solid var(--line); }
.who { flex: 1 1 14rem; min-width: 0; overflow-wrap: anywhere; }
.uid { display: block; font-size: .875rem; opacity: .75; }
.state { font-size: .875rem; }
.in { color: var(--in); font-weight: 600; }
`;

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
