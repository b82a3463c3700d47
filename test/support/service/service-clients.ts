import { afterEach } from '@jest/globals';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { DebateSpaceSimulator, type SimulatorOptions } from 'debate-space-simulator';
import { NestFactory } from '@nestjs/core';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceHealth,
  DebateSpaceModule,
  DebateSpaceService,
  type DebateSpaceModuleOptions,
} from 'nestjs-debate-space';
import { withRealRandom } from '../process/real-random.js';
import { keys, startService } from './service.js';

export interface ScriptedRequest {
  readonly method: string;
  /** As sent, with the query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Which request it is, from 0; those for tokens are not counted. */
  readonly index: number;
}

/** `reset`: the connection breaks without an answer. `silence`: there never is one. */
export type ScriptedAnswer =
  | {
      readonly status?: number;
      readonly headers?: Record<string, string>;
      readonly body?: unknown;
      /** How long the service takes. Default: 0. */
      readonly delayMs?: number;
    }
  | 'reset'
  | 'silence';

export interface ScriptedService {
  readonly url: string;
  /** Without those for tokens. */
  readonly requests: ScriptedRequest[];
  /** How many connections were opened. */
  connections: number;
}

export interface Injected {
  readonly service: DebateSpaceService;
  readonly events: DebateSpaceEvents;
  readonly erasures: DebateSpaceErasures;
  readonly health: DebateSpaceHealth;
  readonly close: () => Promise<void>;
}

export interface ServiceClients {
  readonly simulator: (options?: SimulatorOptions) => Promise<DebateSpaceSimulator>;
  /** For answers that the simulator cannot give. Hands out tokens automatically. */
  readonly scripted: (answer: (request: ScriptedRequest) => ScriptedAnswer) => Promise<ScriptedService>;
  /** What a host injects, in an app without HTTP; without a rate limit unless given. */
  readonly runtime: (
    service: { readonly url: string },
    options?: Partial<DebateSpaceModuleOptions>,
  ) => Promise<Injected>;
  /** What a host injects. */
  readonly client: (
    service: { readonly url: string },
    options?: Partial<DebateSpaceModuleOptions>,
  ) => Promise<DebateSpaceService>;
}

/** Makes services and clients that are closed after each test of the file. */
export function serviceClients(): ServiceClients {
  const close: (() => unknown)[] = [];
  afterEach(async () => {
    for (const closeOne of close.splice(0).reverse()) await closeOne();
  });
  const runtime: ServiceClients['runtime'] = async ({ url }, { http, ...options } = {}) => {
    const module = DebateSpaceModule.forRoot({
      ...keys,
      applicationName: 'demo',
      authUrl: url,
      http: { rateLimit: false, ...http },
      ...options,
    });
    const app = await withRealRandom(() =>
      NestFactory.createApplicationContext(module, { logger: false, abortOnError: false }),
    );
    let closing: Promise<void> | undefined;
    const opened: Injected = {
      service: app.get(DebateSpaceService),
      events: app.get(DebateSpaceEvents),
      erasures: app.get(DebateSpaceErasures),
      health: app.get(DebateSpaceHealth),
      close: () => (closing ??= app.close()),
    };
    close.push(() => opened.close());
    return opened;
  };
  return {
    runtime,
    client: async (service, options) => (await runtime(service, options)).service,
    simulator: async (options) => {
      const simulator = await startService({ rateLimit: false, ...options });
      close.push(() => simulator.stop());
      return simulator;
    },
    scripted: async (answer) => {
      const { service, stop } = await startScripted(answer);
      close.push(stop);
      return service;
    },
  };
}

async function startScripted(
  answer: (request: ScriptedRequest) => ScriptedAnswer,
): Promise<{ service: ScriptedService; stop: () => Promise<void> }> {
  const requests: ScriptedRequest[] = [];
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      const { method = '', url = '', headers } = request;
      const forToken = url === '/oauth/token';
      const seen: ScriptedRequest = { method, url, headers, body, index: requests.length };
      if (!forToken) requests.push(seen);
      const given = forToken ? { body: { access_token: 'a-token', expires_in: 7200 } } : answer(seen);
      if (given === 'silence') return;
      if (given === 'reset') {
        response.socket?.resetAndDestroy();
        return;
      }
      const content = given.body ?? '';
      if ('delayMs' in given) await sleep(given.delayMs);
      response.writeHead(given.status ?? 200, given.headers);
      response.end(
        typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const service: ScriptedService = { url, requests, connections: 0 };
  server.on('connection', () => (service.connections += 1));
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => {
        resolve();
      });
      server.closeAllConnections();
    });
  return { service, stop };
}

/** The error with which a promise rejects; an error itself when it resolves. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => new Error('was expected to reject'),
    (error: unknown) => error,
  );
}
