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
  readonly waiting: number;
  readonly taken: number;
  readonly residentMib: number;
  readonly heapMib: number;
}

/**
 * Counts once and lists the disagreements. `waitingMax` is the maximum number of warm browsers, including those being
 * started or ended.
 */
export async function count(server: TestServer, waitingMax: number): Promise<Count> {
  const [rows, metrics] = await Promise.all([
    server.api<Session[]>('GET', '/v1/browsers/sessions?status=PENDING,RUNNING'),
    server.operator('/metrics'),
  ]);
  assert.equal(rows.status, 200, rows.text);
  const boxes = boxesOf(server.dataDir).map(({ id }) => id);
  // A box that is being created or removed has a folder but no process.
  const places = new Set([...boxes, ...readdirSync(join(server.dataDir, 'sessions'))]).size;
  const owners = server.sessionOfBox;
  const open = new Set(rows.body.map(({ id }) => id));
  const running = new Set(rows.body.flatMap(({ id, status }) => (status === 'RUNNING' ? [id] : [])));
  const inUse = new Set(boxes.flatMap(box => owners.get(box) ?? []));
  const waiting = boxes.filter(box => !owners.has(box)).length;
  const metric = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics.text)?.[1]);
  const taken = metric('berth_boxes');
  return {
    disagreements: [
      ...[...running].filter(id => !inUse.has(id)).map(id => `row ${id} runs without a browser`),
      ...[...inUse].filter(id => !open.has(id)).map(id => `a browser of ${id} runs, which has ended`),
      ...(waiting > waitingMax ? ['more browsers wait than may'] : []),
      ...(taken > places ? ['more places are taken than there are browsers'] : []),
      ...(taken < places ? ['there are more browsers than places are taken'] : []),
    ],
    running: running.size,
    waiting,
    taken,
    residentMib: residentBytes(server.pid) / MIB,
    heapMib: metric('nodejs_heap_size_used_bytes') / MIB,
  };
}

/** Waits until the counts agree on this number of running sessions and warm browsers. */
export async function assertAgrees(server: TestServer, running: number, waiting: number): Promise<void> {
  await eventually(
    `counts that agree, with ${running} running sessions and ${waiting} warm browsers`,
    () => count(server, waiting),
    seen => seen.disagreements.length === 0 && seen.waiting === waiting && seen.running === running,
  );
}

const residentBytes = (pid: number): number =>
  1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
