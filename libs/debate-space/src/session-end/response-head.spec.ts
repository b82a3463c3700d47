import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Containment } from '../async/containment.js';
import { onHead } from './cookie-sessions.js';

type Answer = (response: ServerResponse) => unknown;
const writeHead = (response: ServerResponse, ...args: unknown[]): unknown =>
  Reflect.apply(response.writeHead.bind(response), undefined, args);

/** How a host may write the head of its answer, with two cookies. */
const answers: { name: string; answer: Answer; cookies?: string[] }[] = [
  { name: 'by setHeader', answer: (response) => response.setHeader('Set-Cookie', ['a=1', 'b=2']) },
  {
    name: 'by appendHeader',
    answer: (response) => response.appendHeader('Set-Cookie', 'a=1').appendHeader('Set-Cookie', 'b=2'),
  },
  { name: 'by an object', answer: (response) => writeHead(response, 200, { 'Set-Cookie': ['a=1', 'b=2'] }) },
  {
    name: 'by names and values in turn',
    answer: (response) => writeHead(response, 200, ['Set-Cookie', 'a=1', 'set-cookie', 'b=2']),
  },
  {
    name: 'after a status message',
    answer: (response) => writeHead(response, 200, 'Fine', { 'set-cookie': ['a=1', 'b=2'] }),
  },
  {
    name: 'after no status message',
    answer: (response) => writeHead(response, 200, undefined, { 'set-cookie': ['a=1', 'b=2'] }),
  },
  {
    name: 'by both ways',
    answer: (response) =>
      writeHead(response.setHeader('X-Other', '1'), 200, { 'set-cookie': ['a=1', 'b=2'] }),
  },
  { name: 'not at all', answer: (response) => writeHead(response, 204), cookies: [] },
];

async function answerOf(answer: Answer, watch: (response: ServerResponse) => void): Promise<unknown[]> {
  const server = createServer((_, response) => {
    watch(response);
    answer(response);
    response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const headers = [...response.headers].filter(([name]) => name !== 'date');
  server.closeAllConnections();
  server.close();
  return [response.status, response.statusText, headers];
}

describe('the cookies of a response', () => {
  it.each(answers)('are reported when they are set $name, and the head stays unchanged', async (row) => {
    const { answer, cookies = ['a=1', 'b=2'] } = row;
    const told: (readonly string[])[] = [];
    const watched = await answerOf(answer, (response) => {
      onHead(response, new Containment(() => undefined), ({ setCookies }) => told.push(setCookies));
    });
    expect(told).toEqual([cookies]);
    expect(watched).toEqual(await answerOf(answer, () => undefined));
  });
});
