import { isIPv4 } from 'node:net';
import type { RequestHandler } from 'express';
import { sendAnswer } from '../faults/spoilt-answer.js';
import { Refusal } from './http.js';

/**
 * Refuses requests to other host names than those of this machine and the given ones. A site on the Internet can have its
 * name resolve to 127.0.0.1 (DNS rebinding): without this check, its scripts could read and steer the simulator.
 */
export function knownHosts(names: readonly string[]): RequestHandler {
  const known = new Set(names.map((name) => hostnameOf(name.includes(':') ? `[${name}]` : name)));
  return async ({ headers: { host = '' } }, response, next) => {
    const hostname = hostnameOf(host);
    if (isLoopback(hostname) || (hostname !== undefined && known.has(hostname))) next();
    else await sendAnswer(response, REFUSAL.answer);
  };
}

const REFUSAL = Refusal.of(
  403,
  'The simulator answers to localhost, 127.0.0.1 and [::1] only; for another name, start it with --host-name or hostNames',
);

/** The origin of a page of this machine, such as that of a sample app on another port; `undefined` for all others. */
export function loopbackOrigin(origin: string | undefined): string | undefined {
  return isLoopback(hostnameOf(origin?.replace(/^https?:\/\//, '') ?? '')) ? origin : undefined;
}

/** @param host with or without a port @returns in the form of a URL; `undefined` when it is not valid */
function hostnameOf(host: string): string | undefined {
  const url = `http://${host}`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

function isLoopback(hostname = ''): boolean {
  if (isIPv4(hostname)) return hostname.startsWith('127.');
  return hostname === '[::1]' || /(^|\.)localhost$/.test(hostname);
}
