import { EventEmitter } from 'node:events';
import type { FaultRule, Faults } from '../faults/faults.js';

const SLOW_MS = 5_000;

/** What the simulator can be made to do on its page and in the shell, and the words for it. */
export const DEMO_MODES = {
  normal: 'Answers as usual',
  down: 'Down: ends every connection without an answer',
  'refuse-logouts': 'Refuses logouts (403)',
  slow: `Slow: answers after ${SLOW_MS / 1000} seconds`,
} as const;

export type DemoMode = keyof typeof DEMO_MODES;

export function isDemoMode(value: unknown): value is DemoMode {
  return typeof value === 'string' && Object.hasOwn(DEMO_MODES, value);
}

/** Switches the mode; emits `change`. The page and the demo routes work in every mode, except for the sign-in. */
export class DemoModeSwitch extends EventEmitter<{ change: [] }> {
  #mode: DemoMode = 'normal';

  constructor(private readonly faults: Faults) {
    super();
  }

  get mode(): DemoMode {
    return this.#mode;
  }

  set(mode: DemoMode): void {
    this.#mode = mode;
    this.faults.setFirst(faultOf(mode));
    this.emit('change');
  }
}

function faultOf(mode: DemoMode): FaultRule | undefined {
  if (mode === 'down') return { kind: 'outage' };
  if (mode === 'refuse-logouts') return { kind: 'status', operation: 'logout', status: 403 };
  if (mode === 'slow') return { kind: 'latency', ms: SLOW_MS };
  return undefined;
}
