import type { EndingStack } from './endings.js';
import { expressStacks } from './express-stacks.js';
import { fastifyStacks } from './fastify-stacks.js';
import { socketStacks } from './socket-stacks.js';

export type AnyStack = EndingStack<never>;

const all = [...expressStacks, ...fastifyStacks, ...socketStacks] as unknown as AnyStack[];
const names = [
  'Express, express-session',
  'Express, passport',
  'Express in a parent app, Nest in a parent app with the sessions',
  'Express on AWS Lambda, @codegenie/serverless-express',
  'Fastify, @fastify/session',
  'Fastify over HTTP/2, @fastify/session',
  'Fastify on AWS Lambda, @fastify/aws-lambda',
  'Sockets, socket.io, polling',
  'Sockets, socket.io, websocket',
  'Sockets, express-ws, WebSocket',
];

/** The hosts in which everything of the plugin is broken once. */
export const containmentStacks: readonly AnyStack[] = names.map((name) => {
  const stack = all.find((each) => each.name === name);
  if (!stack) throw new Error(`no such stack: ${name}`);
  return stack;
});
