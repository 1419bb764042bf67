// Counts the items whose numbers must agree except for a short lag: running rows, browsers in the process table, and
// taken slots as reported by the server. Warm browsers are counted separately.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Session } from '../../contract/sessions.ts';
import { boxesOf } from '../harness/boxes.ts';
import type { TestServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const MIB = 1024 ** 2;

export interface Count {
  readonly disagreements: readonly string[];
  readonly running: number;
  readonly warmCount: number;
  readonly takenSlots: number;
  readonly residentMib: number;
  readonly heapMib: number;
}

/**
 * Counts once and lists the disagreements. `warmMax` is the maximum number of warm browsers, including those being
 * started or ended.
 */
export async function count(server: TestServer, warmMax: number): Promise<Count> {
  const [sessionsResponse, metricsResponse] = await Promise.all([
    server.api<Session[]>('GET', '/v1/browsers/sessions?status=PENDING,RUNNING'),
    server.fetchFromOperator('/metrics'),
  ]);
  assert.equal(sessionsResponse.status, 200, sessionsResponse.text);
  const boxIds = boxesOf(server.dataDir).map(({ id }) => id);
  // A box that is being created or removed has a folder but no process.
  const boxCount = new Set([...boxIds, ...readdirSync(join(server.dataDir, 'sessions'))]).size;
  const sessionOfBox = server.sessionOfBox;
  const openIds = new Set(sessionsResponse.body.map(({ id }) => id));
  const runningIds = new Set(sessionsResponse.body.flatMap(({ id, status }) => (status === 'RUNNING' ? [id] : [])));
  const sessionsWithBox = new Set(boxIds.flatMap(box => sessionOfBox.get(box) ?? []));
  const warmCount = boxIds.filter(box => !sessionOfBox.has(box)).length;
  const metricValueOf = (name: string): number =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metricsResponse.text)?.[1]);
  const takenSlots = metricValueOf('berth_boxes');
  return {
    disagreements: [
      ...[...runningIds].filter(id => !sessionsWithBox.has(id)).map(id => `row ${id} runs without a browser`),
      ...[...sessionsWithBox].filter(id => !openIds.has(id)).map(id => `a browser of ${id} runs, which has ended`),
      ...(warmCount > warmMax ? ['more browsers wait than may'] : []),
      ...(takenSlots > boxCount ? ['more places are taken than there are browsers'] : []),
      ...(takenSlots < boxCount ? ['there are more browsers than places are taken'] : []),
    ],
    running: runningIds.size,
    warmCount,
    takenSlots,
    residentMib: residentBytesOf(server.pid) / MIB,
    heapMib: metricValueOf('nodejs_heap_size_used_bytes') / MIB,
  };
}

/** Waits until the counts agree on this number of running sessions and warm browsers. */
export async function assertAgrees(server: TestServer, runningCount: number, warmCount: number): Promise<void> {
  await eventually(
    `counts that agree, with ${runningCount} running sessions and ${warmCount} warm browsers`,
    () => count(server, warmCount),
    seen => seen.disagreements.length === 0 && seen.warmCount === warmCount && seen.running === runningCount,
  );
}

const residentBytesOf = (pid: number): number =>
  1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
