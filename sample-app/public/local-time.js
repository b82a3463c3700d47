/* global document, NodeFilter */
// The server writes each time in UTC; a page with JavaScript shows it in the time zone of its reader.

const UTC_TIME = /\d{1,2} \w{3,4} \d{4}, \d{2}:\d{2}:\d{2} UTC/g;
const FORMAT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' });

export function localTime(date) {
  return FORMAT.format(date);
}

/** The same text, with each time in the zone of the reader. */
export function inLocalTime(text) {
  return text.replace(UTC_TIME, (time) => localTime(new Date(time.replace(',', ''))));
}

export function showLocalTimes(root) {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = inLocalTime(texts.currentNode.data);
    if (text !== texts.currentNode.data) texts.currentNode.data = text;
  }
}
