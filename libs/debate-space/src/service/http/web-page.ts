/** The elements of web pages that no service would name the root of its XML after. */
const ELEMENTS =
  'html|head|body|title|meta|link|script|style|noscript|iframe|h[1-6]|p|div|span|center|font|table|form|pre|img|br|hr|b|strong|a';
const DOCUMENT = /^<(!doctype\s+html|html)(?=[\s/>])/i;
const ELEMENT = new RegExp(`^<(${ELEMENTS})(?=[\\s/>])`, 'i');
const ANY_ELEMENT = new RegExp(`<(${ELEMENTS})(?=[\\s/>])[^<>]*>`, 'i');

/** Whether a body is HTML. XML is no web page, nor is JSON or plain text that is sent as `text/html`, as PHP does. */
export function isHtml(body: string, contentType = ''): boolean {
  const text = contentOf(body);
  if (DOCUMENT.test(text)) return true;
  if (contentType.includes('xml') || /^\s*<\?xml/i.test(body)) return false;
  if (ELEMENT.test(text)) return true;
  return /^\s*text\/html\b/i.test(contentType) && ANY_ELEMENT.test(text) && !isJson(text);
}

/** Without a byte order mark, white space, comments and processing instructions in front. */
function contentOf(body: string): string {
  for (let text = body.trimStart(); ;) {
    const close = text.startsWith('<!--') ? '-->' : text.startsWith('<?') ? '?>' : undefined;
    if (close === undefined) return text;
    const at = text.indexOf(close);
    if (at < 0) return '';
    text = text.slice(at + close.length).trimStart();
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
