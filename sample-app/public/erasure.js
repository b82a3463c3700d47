/* global EventSource */
// Keeps what a page says of an erasure up to date, by server-sent events.

import { inLocalTime } from './local-time.js';

let events;

/**
 * The server sends what its template was given. `data-show` names what an element shows of it, `data-when` the states
 * in which an element is there at all.
 */
export function followErasure(page) {
  events?.close();
  events = undefined;
  const live = page.querySelector('[data-events]');
  if (!live) return;
  events = new EventSource(live.dataset.events);
  events.onmessage = ({ data }) => show(live, JSON.parse(data));
  events.addEventListener('end', () => events?.close());
}

function show(live, erasure) {
  live.dataset.state = erasure.state;
  for (const node of live.querySelectorAll('[data-show]')) {
    const value = node.dataset.show.split('.').reduce((part, name) => part?.[name], erasure) ?? '';
    if (node.localName === 'progress') {
      node.max = erasure.total;
      node.value = value;
      continue;
    }
    // What is the same is not written again: it would be read aloud again.
    const text = inLocalTime(value);
    if (node.textContent !== text) node.textContent = text;
  }
  for (const node of live.querySelectorAll('[data-when]')) {
    node.hidden = !node.dataset.when.split(' ').includes(erasure.state);
  }
}
