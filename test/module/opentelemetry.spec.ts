import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceOutbox,
  DebateSpaceService,
  type DebateSpaceEvent,
} from 'nestjs-debate-space';
import { observeDebateSpace } from 'nestjs-debate-space/opentelemetry';
import { firstEvent } from '#support/hosts/events.js';
import { scenario } from '#support/hosts/scenario.js';
import type { SessionHost } from '#support/hosts/session-host.js';

const scene = scenario();
let host: SessionHost;
let stop: () => void;
let metrics: InMemoryMetricExporter;
let spans: InMemorySpanExporter;
let meters: MeterProvider;

beforeEach(async () => {
  host = await scene.start();
  metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  spans = new InMemorySpanExporter();
  meters = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: metrics })] });
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  stop = observeDebateSpace({
    events: host.app.get(DebateSpaceEvents),
    outbox: host.app.get(DebateSpaceOutbox),
    application: 'demo',
    meter: meters.getMeter('test'),
    tracer: tracers.getTracer('test'),
  });
});
afterEach(async () => {
  stop();
  await meters.shutdown();
});

async function logOutUntil(type: DebateSpaceEvent['type'], ...uids: string[]): Promise<void> {
  const happened = firstEvent(host.app, type);
  for (const uid of uids) await host.app.get(DebateSpaceService).logoutUser(uid);
  await happened;
}

/** The last value of each series, by name and by what tells it from others of this name. */
async function exported(): Promise<Record<string, unknown>> {
  await meters.forceFlush();
  const scopes = metrics.getMetrics().at(-1)?.scopeMetrics ?? [];
  const series = scopes
    .flatMap((scope) => scope.metrics)
    .flatMap(({ descriptor, dataPoints }) =>
      dataPoints.map(({ attributes, value }) => {
        expect(attributes['debate_space.application']).toBe('demo');
        return [[descriptor.name, attributes.outcome ?? attributes.state].filter(Boolean).join(' '), value];
      }),
    );
  return Object.fromEntries(series) as Record<string, unknown>;
}

describe('telemetry', () => {
  it('counts logouts by outcome, times their delivery, and has a span for each attempt and nothing personal', async () => {
    scene.service.faults.add({ kind: 'status', status: 503, operation: 'logout', times: 1 });
    await logOutUntil('logout-delivered', 'alice');
    scene.service.faults.add({ kind: 'status', status: 401, operation: 'logout', times: 1 });
    await logOutUntil('logout-parked', 'bob');
    expect(await exported()).toEqual({
      'debate_space.logouts ended': 2,
      'debate_space.logouts retried': 1,
      'debate_space.logouts delivered': 1,
      'debate_space.logouts parked': 1,
      'debate_space.logout.delay': expect.objectContaining({ count: 1 }),
      'debate_space.outbox.entries pending': 0,
      'debate_space.outbox.entries parked': 1,
      'debate_space.outbox.oldest_pending': 0,
      'debate_space.outbox.degraded': 0,
      'debate_space.service.down': 0,
    });
    const finished = spans.getFinishedSpans();
    expect(
      finished.map(({ name, status, attributes }) => [
        name,
        attributes['debate_space.outcome'],
        status.message,
      ]),
    ).toEqual([
      ['debate_space.logout', 'retried', '503'],
      ['debate_space.logout', 'delivered', undefined],
      ['debate_space.logout', 'parked', '401'],
    ]);
    for (const { duration } of finished) expect(duration[0] + duration[1]).toBeGreaterThan(0);
    const attributes = finished.map((span) => [span.attributes, span.status]);
    expect(JSON.stringify([metrics.getMetrics(), attributes])).not.toMatch(/alice|bob/);
  });

  it('counts erasures by outcome', async () => {
    const finished = firstEvent(host.app, 'erasure-finished');
    const list = { mode: 'delete', reference: 'all' } as const;
    await host.app.get(DebateSpaceErasures).requestMany(['alice', 'bob', 'nobody'], list);
    await finished;
    expect(await exported()).toMatchObject({
      'debate_space.erasures erased': 2,
      'debate_space.erasures not-found': 1,
    });
  });

  it('shows an outage', async () => {
    await scene.service.goDown();
    await logOutUntil('service-down', 'alice', 'bob', 'carol', 'dave', 'erin');
    expect(await exported()).toMatchObject({
      'debate_space.outbox.entries pending': 5,
      'debate_space.service.down': 1,
    });
  });

  it('ends when it is stopped', async () => {
    await logOutUntil('logout-delivered', 'alice');
    const before = await exported();
    stop();
    await logOutUntil('logout-delivered', 'alice');
    const after = await exported();
    expect(after['debate_space.logouts delivered']).toEqual(before['debate_space.logouts delivered']);
    expect(after).not.toHaveProperty('debate_space.service.down');
    expect(spans.getFinishedSpans()).toHaveLength(1);
  });
});
