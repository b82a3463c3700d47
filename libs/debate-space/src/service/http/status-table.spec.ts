import { expect, it } from '@jest/globals';
import { errorOf, serviceClients } from '#support/service/service-clients.js';
import type { DebateSpaceError, DebateSpaceRequestError } from '../../errors.js';
import { decide, seemsDown } from '../../logout/delivery-policy.js';
import { backchannelLogoutUrl, LogoutRoute } from '../calls/logout-route.js';
import { Transport } from './transport.js';

const { scripted, client } = serviceClients();
const never = new AbortController().signal;

type Logout = 'delivered' | 'parked' | 'repeated' | 'repeated: down';
type Row = readonly [status: number, body: unknown, type: string, logout: Logout, deletion: string];

const page = '<!DOCTYPE html><title>Access denied</title>';
const [text, html, json, xml] = ['text/plain', 'text/html; charset=utf-8', 'application/json', 'text/xml'];
const elsewhere = (outcome = 'refused') => `UNEXPECTED_RESPONSE ${outcome} repeated`;

/** The interface shows no body of a 200: only what contradicts counts. */
const bodies: readonly (readonly [body: unknown, type: string])[] = [
  ['', text],
  [' \n', text],
  ['', html], // `head :ok` of Rails
  ['OK', text],
  ['OK', html], // PHP
  ['1 < 2 users', html],
  ['<?xml version="1.0"?><result>done</result>', html],
  ['<!-- done --><result/>', xml],
  ['<title>done</title>', xml],
  ['<p:result xmlns:p="urn:p"/>', text],
  ['null', json],
  [{ success: true, errors: [] }, json],
  [{ success: null, error: '' }, json],
  ['{"message":"<b>done</b>"}', html],
  [`${'['.repeat(20_000)}${']'.repeat(20_000)}`, json],
];

const no = '{"success":false}';
/** Bodies by which the service itself says that it did not do it. */
const denials: typeof bodies = [
  [{ success: false }, json],
  [`\uFEFF${no}`, html],
  [{ success: 'false' }, json],
  [{ success: 0 }, json],
  ['false', json],
  [{ error: 'locked' }, json],
  [{ success: true, errors: ['locked'] }, json],
  [{ success: true, errors: [{ code: 7 }] }, json],
  ['<result><success>false</success></result>', xml],
  ['success=false', text],
  ['---\nsuccess: no\n', text],
  [`)]}',\n${no}`, text],
  [`done(${no})`, 'application/javascript'],
  [`${no}\n${no}\n`, 'application/x-ndjson'],
  ["{'success': false}", json],
  ['{"success":false,"success":true}', json],
  ['{"data":{"success":false}}', json],
  ['{"Success":False}', json],
  ['{"__proto__":{"success":false},"constructor":{"success":0}}', json],
];

const messagePack = Buffer.from([0x81, 0xa7, ...Buffer.from('success'), 0xc2]);
/** Bodies of a 200 that nobody can read. */
const unreadable: typeof bodies = [
  ['{"success":tr', json],
  ['{"success":true}}', json],
  ['{"success":true /* not yet */}', json],
  [messagePack, json],
  [messagePack, 'application/msgpack'],
  ['--b\r\n\r\nOK\r\n--b--\r\n', 'multipart/mixed; boundary=b'],
  ['data: done\n\n', 'text/event-stream'],
  ['<svg xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml'],
  [page, text],
  [`<!-- ${'x'.repeat(9_000)} -->${page}`, text],
  [Buffer.from(page, 'utf16le'), 'text/html; charset=utf-16'],
  ['<script>location = "/login"</script>', text],
];

/** Each answer, and what it means for a logout and for the deletion of a user. */
const rows: readonly Row[] = [
  ...bodies.map(([body, type]): Row => [200, body, type, 'delivered', 'done']),
  [201, '', text, 'delivered', 'done'],
  [204, '', text, 'delivered', 'done'],
  [202, '', text, 'delivered', 'UNEXPECTED_RESPONSE unknown repeated'],
  ...denials.map(([body, type]): Row => [200, body, type, 'repeated', 'REFUSED refused']),

  // The service's own word.
  ...[400, 402, 406, 413, 415, 422, 451].flatMap((status): Row[] => [
    [status, { success: false }, json, 'parked', 'REFUSED refused'],
    [status, 'no', html, 'parked', 'REFUSED refused'],
    [status, '', html, 'parked', 'REFUSED refused'],
  ]),
  [401, '', text, 'parked', 'AUTHENTICATION refused repeated'], // once, with a new token
  [401, { error: '<p>no</p>' }, html, 'parked', 'AUTHENTICATION refused repeated'],
  [403, '<error>no</error>', xml, 'parked', 'PERMISSION refused'],
  [404, { error: 'no user' }, json, 'repeated: down', 'USER_NOT_FOUND refused'],
  [410, { error: 'no user' }, json, 'repeated: down', 'USER_NOT_FOUND refused'],

  // Something else than the service.
  ...unreadable.map(([body, type]): Row => [200, body, type, 'repeated: down', elsewhere('unknown')]),
  [400, Buffer.from([0]), json, 'repeated: down', elsewhere()],
  ...[400, 401, 403, 404, 405, 410, 413, 422].map((status): Row => [
    status,
    page,
    html,
    'repeated: down',
    elsewhere(),
  ]),
  [200, page, html, 'repeated: down', elsewhere('unknown')],
  [403, `\uFEFF \n<!-- 1020 > --><!-- -->${page}`, text, 'repeated: down', elsewhere()],
  [403, '<?xml version="1.0"?><!DOCTYPE html PUBLIC ""><html/>', xml, 'repeated: down', elsewhere()],
  [403, '<HTML><BODY>no</BODY></HTML>', json, 'repeated: down', elsewhere()],
  [403, '<center><h1>403 Forbidden</h1></center>', text, 'repeated: down', elsewhere()],
  [403, 'Forbidden.<br>Ask your operator.', html, 'repeated: down', elsewhere()],
  ...[300, 302, 304, 307].map((status): Row => [status, '', text, 'repeated: down', elsewhere()]),
  ...[405, 407, 421].map((status): Row => [status, 'no', text, 'repeated: down', elsewhere()]),

  // Nobody serves at the moment.
  [408, '', text, 'repeated: down', 'TIMEOUT unknown repeated'],
  [423, {}, json, 'repeated: down', 'UNAVAILABLE refused repeated'],
  [425, {}, json, 'repeated: down', 'UNAVAILABLE refused repeated'],
  [499, '', text, 'repeated: down', 'UNAVAILABLE unknown repeated'],
  ...[500, 502, 503, 599].map((status): Row => [
    status,
    page,
    html,
    'repeated: down',
    'UNAVAILABLE unknown repeated',
  ]),
  [429, page, html, 'repeated', 'RATE_LIMITED refused repeated'],
];

it('A status and a body mean the same for logouts and for user calls', async () => {
  let answer: Row = [200, '', text, 'delivered', 'done'];
  const service = await scripted(() => {
    const [status, body, type] = answer;
    return { status, body, headers: { 'content-type': type } };
  });
  const debate = await client(service, { http: { maxAttempts: 1 } });
  const transport = new Transport(10_000);
  const route = new LogoutRoute(transport, backchannelLogoutUrl(service.url, 'demo'));
  const meanings: Row[] = [];
  for (const row of rows) {
    answer = row;
    const [status, body, type] = row;
    meanings.push([status, body, type, await logout(), await deletion()]);
  }
  transport.close();
  expect(meanings).toEqual(rows);

  async function logout(): Promise<Logout> {
    const answered = await route.send('a.b.c', never);
    const { action } = decide(answered, { attempts: 2, rejections: 2, ageMs: 0 }, Infinity);
    if (action === 'finish') return 'delivered';
    if (action === 'park') return 'parked';
    return seemsDown(answered) ? 'repeated: down' : 'repeated';
  }

  async function deletion(): Promise<string> {
    const result = debate.deleteUser('alice').then(() => 'done');
    const error = (await errorOf(result)) as Partial<DebateSpaceRequestError & DebateSpaceError>;
    const { code, outcome, retryable } = error;
    if (code === undefined || outcome === undefined) return await result;
    return `${code.replace('ERR_DEBATE_SPACE_', '')} ${outcome}${retryable ? ' repeated' : ''}`;
  }
});
