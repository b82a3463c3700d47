import type { IncomingMessage, ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import {
  DebateSpaceEvents,
  type DebateSpaceModuleOptions,
  type DebateSpaceSessionOptions,
} from 'nestjs-debate-space';
import type { EndingHost } from './endings.js';
import { storageWith } from './storage-with.js';

/** A request of the host as its platform has it, and the response of Node.js that belongs to it. */
export interface FaultyRequest {
  readonly request: object;
  readonly raw: IncomingMessage | undefined;
  readonly response: ServerResponse | undefined;
}

/** Something in the host's process that goes wrong. */
export interface HostFault {
  readonly name: string;
  /** In a handler, before the session is destroyed. */
  readonly before?: (parts: FaultyRequest) => void;
  /** In a handler, after the session was destroyed. */
  readonly after?: (parts: FaultyRequest) => void;
  /** Whether the session is left alone. */
  readonly stays?: boolean;
  readonly options?: Partial<DebateSpaceModuleOptions>;
  /** Whether it has nothing to do with the platform: played on one. */
  readonly onOneHost?: boolean;
  /** When the host has started. */
  readonly started?: (host: EndingHost) => void;
}

const fail = (): never => {
  throw new Error('a fault that was injected');
};
const failing = (target: object | undefined, name: string): void => {
  if (target) Object.defineProperty(target, name, { value: fail, configurable: true, writable: true });
};
const failingGetter = (target: object | undefined, name: string): void => {
  if (target) Object.defineProperty(target, name, { get: fail, set: () => undefined, configurable: true });
};

/** Of a method that may return a promise. */
const failures = [
  { how: 'throws', failing: fail },
  { how: 'rejects', failing: () => Promise.reject(new Error('a fault that was injected')) },
  { how: 'never answers', failing: () => new Promise<never>(() => undefined) },
] as const;
function failingClock(): HostFault {
  let isBroken = false;
  return {
    name: 'the storage throws in now, when the host has started',
    options: { storage: storageWith((memory) => ({ now: () => (isBroken ? fail() : memory.now()) })) },
    started: () => (isBroken = true),
  };
}
const storageFaults: readonly HostFault[] = [
  ...(['get', 'range', 'count', 'commit', 'close'] as const).flatMap((method) =>
    failures.map(({ how, failing }) => ({
      name: `the storage ${how} in ${method}`,
      options: { storage: storageWith(() => ({ [method]: failing })) },
    })),
  ),
  failingClock(),
].map((fault) => ({ ...fault, onOneHost: true }));

const around = (name: string, apply: (parts: FaultyRequest) => void): HostFault[] => [
  { name: `${name}, before the end`, before: apply },
  { name: `${name}, after the end`, after: apply },
  { name: `${name}, and the session stays`, before: apply, stays: true },
];
const whenClosed = (name: string, apply: (parts: FaultyRequest) => void): HostFault[] =>
  around(`${name} when the response closes`, (parts) => {
    parts.response?.prependListener('close', () => {
      apply(parts);
    });
  });
const session = (options: DebateSpaceSessionOptions): Partial<DebateSpaceModuleOptions> => ({
  session: options,
});

/** Each is played with the plugin and without it. */
export const hostFaults: readonly HostFault[] = [
  { name: 'nothing goes wrong' },
  ...around('the response is deleted from the request', ({ raw }) => {
    if (raw) Reflect.deleteProperty(raw, 'res');
  }),
  ...around('the response of the request is null', ({ raw }) => {
    if (raw) Object.assign(raw, { res: null });
  }),
  ...whenClosed('response.getHeader throws', ({ response }) => {
    failing(response, 'getHeader');
  }),
  ...whenClosed('response.headersSent throws', ({ response }) => {
    failingGetter(response, 'headersSent');
  }),
  ...whenClosed('response.writableEnded throws', ({ response }) => {
    failingGetter(response, 'writableEnded');
  }),
  ...whenClosed('request.headers throws', ({ raw }) => {
    failingGetter(raw, 'headers');
  }),
  ...whenClosed('the session of the request throws', ({ request }) => {
    failingGetter(request, 'session');
  }),
  ...whenClosed('the session id of the request throws', ({ request }) => {
    failingGetter(request, 'sessionID');
  }),
  ...whenClosed('the request is frozen', ({ request }) => {
    Object.freeze(request);
  }),
  ...around('response.on throws', ({ response }) => {
    failing(response, 'on');
  }),
  ...around('response.off throws', ({ response }) => {
    failing(response, 'off');
  }),
  ...around('response.closed throws', ({ response }) => {
    failingGetter(response, 'closed');
  }),
  { name: 'session.uid throws', options: session({ uid: fail }) },
  {
    name: 'a subscriber to the events throws',
    started: ({ app }) => {
      app.get(DebateSpaceEvents).events$.subscribe(fail);
    },
  },
  {
    name: 'the logger throws at a fault',
    options: session({ uid: fail }),
    started: () => {
      Logger.overrideLogger({ log: fail, warn: fail, error: fail });
    },
  },
  ...storageFaults,
];

/** Those that are played on a host; the platform matters to most of them. */
export const faultsOn = (isFirst: boolean): readonly HostFault[] =>
  hostFaults.filter(({ onOneHost = false }) => isFirst || !onOneHost);
