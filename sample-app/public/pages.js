/* global document, DOMParser, FormData, URLSearchParams, history, window */
// What a page without JavaScript lacks: the live view of the debate space, progress that shows by itself, and forms
// that change their half of the page alone, so that a logout here can be watched over there.
import { showUsers, watchDebate } from './debate.js';
import { followErasure } from './erasure.js';
import { showLocalTimes } from './local-time.js';

/** What a dry run fills in. */
const COUNTED = ['dry-run', 'erase-number'];
const here = () => document.getElementById('here');

function enliven() {
  watchDebate();
  showLocalTimes(here());
  followErasure(here());
  const print = here().querySelector('[data-print]');
  if (print) print.hidden = false;
}

/** Puts what another page has in the place of this one's. The view of the debate space goes on. */
function showPage(page, url) {
  const chosen = here().querySelector('input[type=file]')?.files;
  const counted = COUNTED.map((id) => document.getElementById(id));
  for (const part of ['header', '#here']) {
    document.querySelector(part).replaceWith(document.adoptNode(page.querySelector(part)));
  }
  const debate = document.getElementById('debate');
  const otherDebate = page.getElementById('debate');
  if (debate && !otherDebate) debate.remove();
  if (!debate && otherDebate) document.querySelector('main').append(document.adoptNode(otherDebate));
  // A form that comes back has the file that was chosen.
  const input = here().querySelector('input[type=file]');
  if (input && chosen && url === window.location.href) {
    input.files = chosen;
    // So does what was counted of it.
    for (const node of counted) if (node) document.getElementById(node.id)?.replaceWith(node);
  }
  document.title = page.title;
  history.replaceState(null, '', url);
  (here().querySelector('[autofocus]') ?? here()).focus();
  enliven();
  showUsers();
}

/** Sends a form as its button says. @returns the page that came of it, and its address */
async function send(form, button) {
  const data = new FormData(form, button);
  const body = form.enctype === 'multipart/form-data' ? data : new URLSearchParams(data);
  const action = button?.getAttribute('formaction') ?? form.action;
  const response = await fetch(action, { method: 'POST', body, headers: { Accept: 'text/html' } });
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  // A failed request has no page of its own to go back to.
  return { response, page, url: response.redirected ? response.url : window.location.href };
}

document.addEventListener('submit', async (event) => {
  event.preventDefault();
  const { target: form, submitter: button } = event;
  const sending = send(form, button);
  if (button) button.disabled = true;
  try {
    const { response, page, url } = await sending;
    const into = button?.dataset.into;
    if (into === undefined || !response.ok) {
      showPage(page, url);
      return;
    }
    // The form stays as it is filled in, with the file that was chosen.
    for (const id of into.split(' '))
      document.getElementById(id).replaceChildren(...page.getElementById(id).childNodes);
    button.disabled = false;
    button.focus();
  } catch {
    // Never twice: what became of the request, the start page shows.
    window.location.assign('/');
  }
});

/** The button says what it does; figures of another file or column say nothing any more. */
document.addEventListener('change', ({ target }) => {
  const verb = target.form?.querySelector('[data-verb]');
  if (!verb) return;
  if (target.name === 'mode') verb.textContent = target.value === 'delete' ? 'Delete' : 'Anonymize';
  if (target.name !== 'list' && target.name !== 'column') return;
  document.getElementById('dry-run').replaceChildren();
  document.getElementById('erase-number').textContent = 'all of them';
});

// A printed receipt has its details.
window.addEventListener('beforeprint', () => {
  for (const details of here().querySelectorAll('[data-events] details')) details.open = true;
});

document.addEventListener('click', (event) => {
  if (event.target.closest('[data-print]')) window.print();
});

enliven();
