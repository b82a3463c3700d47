import { isIPv4 } from 'node:net';
import type { RequestHandler } from 'express';
import { Refusal } from '../service/refusal.js';
import { sendAnswer } from '../service/send-answer.js';

/**
 * Refuses requests to other host names than those of this machine. A site on the Internet can have its name resolve to
 * 127.0.0.1 (DNS rebinding): without this check, its scripts could read the page and steer the simulator.
 */
export const loopbackOnly: RequestHandler = async (request, response, next) => {
  if (isLoopback(request.headers.host ?? '')) next();
  else await sendAnswer(response, REFUSAL.answer);
};

const REFUSAL = Refusal.of(403, 'The page of the simulator answers to localhost, 127.0.0.1 and [::1] only');

/** @param host with or without a port */
function isLoopback(host: string): boolean {
  const url = `http://${host}`;
  if (!URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  if (isIPv4(hostname)) return hostname.startsWith('127.');
  return hostname === '[::1]' || /(^|\.)localhost$/.test(hostname);
}
