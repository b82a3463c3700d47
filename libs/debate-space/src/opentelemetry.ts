import { metrics, SpanKind, SpanStatusCode, trace, type Meter, type Tracer } from '@opentelemetry/api';
import type { DebateSpaceEvent } from './events.js';
import type { DebateSpaceEvents } from './api/debate-space-events.js';
import type { DebateSpaceOutbox } from './api/debate-space-outbox.js';

/** What `observeDebateSpace` observes, and where it reports to. */
export interface DebateSpaceTelemetryOptions {
  /** Of the application: `app.get(DebateSpaceEvents)`. */
  readonly events: DebateSpaceEvents;
  /** Of the same application: `app.get(DebateSpaceOutbox)`. */
  readonly outbox: DebateSpaceOutbox;
  /** Becomes the attribute `debate_space.application`; for several applications in one host. Default: `default`. */
  readonly application?: string;
  /** Default: that of the global provider, under the name `nestjs-debate-space`. */
  readonly meter?: Meter;
  /** Default: that of the global provider, under the name `nestjs-debate-space`. */
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
 * Hands what happens on to OpenTelemetry: the counter `debate_space.logouts` by `outcome`, the histogram
 * `debate_space.logout.delay` (seconds from the end of a session to its delivery), the counter `debate_space.erasures` by `outcome`, the gauges
 * `debate_space.outbox.entries` by `state`, `debate_space.outbox.oldest_pending` (seconds), `debate_space.outbox.degraded`
 * and `debate_space.service.down` (0 or 1), and a span `debate_space.logout` for each attempt. Nothing of it holds
 * personal data.
 * @returns how to stop
 */
export function observeDebateSpace(options: DebateSpaceTelemetryOptions): () => void {
  const { events, outbox, application = 'default' } = options;
  const { meter = metrics.getMeter(SCOPE), tracer = trace.getTracer(SCOPE) } = options;
  const attributes = { 'debate_space.application': application };
  const logouts = meter.createCounter('debate_space.logouts', {
    description: 'Logouts, by what became of them',
  });
  const delay = meter.createHistogram('debate_space.logout.delay', {
    description: 'From the end of a session to its delivery',
    unit: 's',
    advice: { explicitBucketBoundaries: [0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 1800, 7200, 86_400] },
  });
  const erasures = meter.createCounter('debate_space.erasures', {
    description: 'Erasures of users, by what became of them',
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
    description: 'Logouts in the outbox',
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

/** After the fact: the span of an attempt that has just come to its end. */
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
