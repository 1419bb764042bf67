// Prometheus metrics at /metrics, besides those of the HTTP server. Each label has only a few possible values, and no
// label contains an id.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { QueueCounts } from './engines/store/rows/queues.ts';
import type { SessionRow } from './engines/store/rows/sessions.ts';
import type { LoopListener } from './kit/loop-watch.ts';

const DELAY_BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const START_BUCKETS_SECONDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30];

export interface MetricSources {
  sessionsByStatus(): Promise<Readonly<Record<string, number>>>;
  cdpClients(): number;
  slots: number;
  occupiedSlots(): number;
  warmBrowsers(): number;
  /** The number of warm browsers that are being started. */
  warmStarting(): number;
  /** The number of session starts that wait for a processor. */
  startsWaiting(): number;
  isDemandContinuous(): boolean;
  waitingCreates(): number;
  unstoredRecordings(): number;
  /** The work that is queued in the database for background tasks. */
  queueCounts(): Promise<QueueCounts>;
  /** The number of jobs that wait for a worker thread. */
  waitingJobs(): number;
}

/**
 * The prefix of metrics for which prom-client would wake the process a hundred times a second.
 * `berth_event_loop_delay_seconds` replaces them.
 */
const SAMPLED_LAG_PREFIX = 'nodejs_eventloop_lag_';
/** The longest interval that a timer accepts. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export interface Metrics {
  readonly registry: Registry;
  recordStart(row: SessionRow, seconds: number): void;
  recordClaim(outcome: 'hit' | 'miss'): void;
  recordEnd(row: SessionRow): void;
  recordRefusal(refusalReason: string): void;
  readonly loop: Omit<LoopListener, 'isUnused'>;
}

export function openMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: TIMER_MS_MAX });
  for (const { name } of registry.getMetricsAsArray())
    if (name.startsWith(SAMPLED_LAG_PREFIX)) registry.removeSingleMetric(name);
  const registers = [registry];
  const refusals = new Counter({
    name: 'berth_refused_creates_total',
    help: "Refused creates, by the limit that was reached: the application's sessions, its creates per minute, its queue, or the host.",
    labelNames: ['why'],
    registers,
  });
  const claims = new Counter({
    name: 'berth_warm_claims_total',
    help: 'Creates that claimed a warm browser (hit), and creates that found no warm browser (miss).',
    labelNames: ['outcome'],
    registers,
  });
  const starts = new Histogram({
    name: 'berth_session_start_seconds',
    help: 'Time from the create request to a running browser, claimed (warm) or started for it (cold).',
    labelNames: ['browser'],
    buckets: START_BUCKETS_SECONDS,
    registers,
  });
  const ends = new Histogram({
    name: 'berth_session_seconds',
    help: 'Duration of ended sessions, by end reason.',
    labelNames: ['reason'],
    buckets: [1, 10, 60, 300, 900, 3600, 21_600],
    registers,
  });
  return {
    registry,
    loop: loopMetrics(registers),
    recordRefusal: refusalReason => refusals.inc({ why: refusalReason }),
    recordStart: (row, seconds) => starts.observe({ browser: wasWarm(row) ? 'warm' : 'cold' }, seconds),
    recordClaim: outcome => claims.inc({ outcome }),
    recordEnd: row => {
      const seconds = ((row.endedAt ?? row.updatedAt).getTime() - row.createdAt.getTime()) / 1000;
      ends.observe({ reason: row.end?.reason ?? 'unknown' }, seconds);
    },
  };
}

function loopMetrics(registers: Registry[]): Metrics['loop'] {
  const delays = new Histogram({
    name: 'berth_event_loop_delay_seconds',
    help: 'Delay of event loop timers, measured twenty times a second, and once a second while the server is unused.',
    buckets: DELAY_BUCKETS_SECONDS,
    registers,
  });
  const longTurns = new Counter({
    name: 'berth_long_turns_total',
    help: 'Event loop turns longer than 100 ms, by the work done in them; `other` is work that is not attributed.',
    labelNames: ['work'],
    registers,
  });
  const longestTurn = new Gauge({
    name: 'berth_longest_turn_seconds',
    help: 'CPU time of the longest event loop turn above 100 ms since the start.',
    registers,
  });
  let longestMs = 0;
  return {
    onDelay: ms => delays.observe(ms / 1000),
    onLongTurn: ({ cpuMs, markedWork }) => {
      longTurns.inc({ work: markedWork?.what ?? 'other' });
      longestMs = Math.max(longestMs, cpuMs);
      longestTurn.set(longestMs / 1000);
    },
  };
}

/** Registers the metrics that are read from the parts of the server at each scrape. */
export function measure({ registry }: Pick<Metrics, 'registry'>, sources: MetricSources): void {
  const registers = [registry];
  new Gauge({
    name: 'berth_sessions',
    help: 'Sessions of this host that have not ended, by status.',
    labelNames: ['status'],
    registers,
    async collect() {
      this.reset();
      const counts = await sources.sessionsByStatus();
      for (const status of ['PENDING', 'RUNNING']) this.set({ status }, counts[status] ?? 0);
    },
  });
  new Gauge({ name: 'berth_slots', help: 'Browsers that may run at once on this host.', registers }).set(sources.slots);
  new Gauge({
    name: 'berth_boxes',
    help: 'Browsers that occupy a slot on this host: of sessions, warm, starting and ending.',
    registers,
    collect() {
      this.set(sources.occupiedSlots());
    },
  });
  new Gauge({
    name: 'berth_cdp_clients',
    help: 'Attached CDP clients.',
    registers,
    collect() {
      this.set(sources.cdpClients());
    },
  });
  measureWarmPool(sources, registers);
  new Gauge({
    name: 'berth_waiting_creates',
    help: 'Creates in the queue.',
    registers,
    collect() {
      this.set(sources.waitingCreates());
    },
  });
  new Gauge({
    name: 'berth_recordings_unstored',
    help: 'Recorded pages that have ended, but are not yet encoded and stored.',
    registers,
    collect() {
      this.set(sources.unstoredRecordings());
    },
  });
  new Gauge({
    name: 'berth_queued',
    help: 'Background work that waits: `files` of this host to be stored, `webhooks` and `mails` of the installation to be sent, and `jobs` of this process that need a worker thread.',
    labelNames: ['queue'],
    registers,
    async collect() {
      const { files, webhooks, mails } = await sources.queueCounts();
      const countByQueue = { files, webhooks, mails, jobs: sources.waitingJobs() };
      for (const [queue, count] of Object.entries(countByQueue)) this.set({ queue }, count);
    },
  });
}

function measureWarmPool(sources: MetricSources, registers: Registry[]): void {
  new Gauge({
    name: 'berth_warm_browsers',
    help: 'Warm browsers that have started and are not yet claimed by a session.',
    registers,
    collect() {
      this.set(sources.warmBrowsers());
    },
  });
  new Gauge({
    name: 'berth_warm_starting',
    help: 'Browsers that are being started in advance.',
    registers,
    collect() {
      this.set(sources.warmStarting());
    },
  });
  new Gauge({
    name: 'berth_starts_waiting',
    help: 'Starts of browsers for sessions that wait until fewer browsers are starting.',
    registers,
    collect() {
      this.set(sources.startsWaiting());
    },
  });
  new Gauge({
    name: 'berth_warm_demand_continuous',
    help: '1 while creates arrive so frequently that browsers are started in advance on every processor; otherwise 0.',
    registers,
    collect() {
      this.set(sources.isDemandContinuous() ? 1 : 0);
    },
  });
}

/** The box of a claimed warm browser keeps the id that it had before the claim. */
const wasWarm = ({ id, box }: SessionRow): boolean => box !== undefined && box.id !== id;
