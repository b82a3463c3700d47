import { metrics, SpanKind, SpanStatusCode, trace, type Meter, type Tracer } from '@opentelemetry/api';
import type { DebateSpaceEvent } from './events.js';
import type { DebateSpaceEvents } from './api/debate-space-events.js';
import type { DebateSpaceOutbox } from './api/debate-space-outbox.js';

/** Options of `observeDebateSpace`. */
export interface DebateSpaceTelemetryOptions {
  /** The events of the application: `app.get(DebateSpaceEvents)`. */
  readonly events: DebateSpaceEvents;
  /** The outbox of the same application: `app.get(DebateSpaceOutbox)`. */
  readonly outbox: DebateSpaceOutbox;
  /** The attribute `debate_space.application`, for several applications in one host. @defaultValue `'default'` */
  readonly application?: string;
  /** @defaultValue the meter `nestjs-debate-space` of the global provider */
  readonly meter?: Meter;
  /** @defaultValue the tracer `nestjs-debate-space` of the global provider */
  readonly tracer?: Tracer;
}

const SCOPE = 'nestjs-debate-space';
const OUTCOMES = {
  'session-ended': 'ended',
  'logout-delivered': 'delivered',
  'logout-retrying': 'retried',
  'logout-parked': 'parked',
} as const;

type Attempted = Extract<DebateSpaceEvent, { tookMs: number }>;

/**
 * Reports to OpenTelemetry, without personal data:
 *
 * - counters: `debate_space.logouts` and `debate_space.erasures`, both by `outcome`
 * - a histogram: `debate_space.logout.delay`, seconds from the end of a session to its delivery
 * - gauges: `debate_space.outbox.entries` by `state`, `debate_space.outbox.oldest_pending` (seconds),
 *   `debate_space.outbox.degraded` and `debate_space.service.down` (0 or 1)
 * - a span `debate_space.logout` for each attempt
 *
 * @returns a function that stops the reports
 *
 * @example
 * ```ts
 * const stop = observeDebateSpace({ events: app.get(DebateSpaceEvents), outbox: app.get(DebateSpaceOutbox) });
 * ```
 */
export function observeDebateSpace(options: DebateSpaceTelemetryOptions): () => void {
  const { events, outbox, application = 'default' } = options;
  const { meter = metrics.getMeter(SCOPE), tracer = trace.getTracer(SCOPE) } = options;
  const attributes = { 'debate_space.application': application };
  const logouts = meter.createCounter('debate_space.logouts', {
    description: 'Logouts by outcome',
  });
  const delay = meter.createHistogram('debate_space.logout.delay', {
    description: 'From the end of a session to its delivery',
    unit: 's',
    advice: { explicitBucketBoundaries: [0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 1800, 7200, 86_400] },
  });
  const erasures = meter.createCounter('debate_space.erasures', {
    description: 'Erasures of users by outcome',
  });
  const subscription = events.events$.subscribe((event) => {
    if (event.type in OUTCOMES) {
      logouts.add(1, { ...attributes, outcome: OUTCOMES[event.type as keyof typeof OUTCOMES] });
    }
    const erasure = erasureOutcome(event);
    if (erasure !== undefined) erasures.add(1, { ...attributes, outcome: erasure });
    if (event.type === 'logout-delivered') delay.record(event.delayMs / 1000, attributes);
    if ('tookMs' in event) traceAttempt(tracer, event, attributes);
  });
  const stopGauges = observeOutbox(meter, outbox, attributes);
  return () => {
    subscription.unsubscribe();
    stopGauges();
  };
}

function observeOutbox(
  meter: Meter,
  outbox: DebateSpaceOutbox,
  attributes: Record<string, string>,
): () => void {
  const entries = meter.createObservableGauge('debate_space.outbox.entries', {
    description: 'Logouts that wait or are parked',
  });
  const oldest = meter.createObservableGauge('debate_space.outbox.oldest_pending', {
    description: 'How long the oldest logout has waited',
    unit: 's',
  });
  const degraded = meter.createObservableGauge('debate_space.outbox.degraded');
  const down = meter.createObservableGauge('debate_space.service.down');
  const gauges = [entries, oldest, degraded, down];
  const observe: Parameters<Meter['addBatchObservableCallback']>[0] = async (result) => {
    const stats = await outbox.stats();
    for (const state of ['pending', 'parked'] as const) {
      result.observe(entries, stats[state], { ...attributes, state });
    }
    result.observe(oldest, (stats.oldestPendingMs ?? 0) / 1000, attributes);
    result.observe(degraded, Number(stats.degraded), attributes);
    result.observe(down, Number(stats.serviceDown), attributes);
  };
  meter.addBatchObservableCallback(observe, gauges);
  return () => {
    meter.removeBatchObservableCallback(observe, gauges);
  };
}

function erasureOutcome(event: DebateSpaceEvent): string | undefined {
  if (event.type === 'erasure-done') return event.outcome;
  if (event.type === 'erasure-vetoed') return 'vetoed';
  if (event.type === 'erasure-retrying') return 'retried';
  return event.type === 'erasure-parked' ? 'parked' : undefined;
}

/** Creates the span of an attempt that has just ended. */
function traceAttempt(tracer: Tracer, event: Attempted, attributes: Record<string, string>): void {
  const endTime = Date.now();
  const outcome = OUTCOMES[event.type];
  const span = tracer.startSpan('debate_space.logout', {
    kind: SpanKind.CLIENT,
    root: true,
    startTime: endTime - event.tookMs,
    attributes: { ...attributes, 'debate_space.attempt': event.attempts, 'debate_space.outcome': outcome },
  });
  if (event.type !== 'logout-delivered') span.setStatus({ code: SpanStatusCode.ERROR, message: event.cause });
  span.end(endTime);
}
