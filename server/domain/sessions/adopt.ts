// Adoption, the first step of a starting server. Each open session of the previous process is either continued with its
// running browser or ended with a reason. Boxes without a session are removed.

import type { BoxRecord } from '../../engines/slots/slots.ts';
import type { SessionEnd, SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { addMs } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { DecidedEnd } from './actors.ts';
import type { AdoptionNotes } from './adoption-notes.ts';
import type { BrowserHost } from './browser-host.ts';
import type { BrowserStarter } from './browser-starter.ts';
import type { Endings } from './endings.ts';
import { isExclusive } from './exclusive.ts';
import type { LiveSession } from './live.ts';
import type { Watchers } from './watchers.ts';

/** The maximum number of browsers that are adopted at the same time. */
const ADOPTIONS_AT_ONCE_MAX = 8;

/** The reason for which an exclusive session is not adopted: a new process could not mask the typed text. */
const TYPED_CREDENTIALS_REASON =
  'the session was not continued, because the service had typed credentials into its pages';

export interface AdoptParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly rows: SessionRows;
  readonly browserHost: BrowserHost;
  readonly browserStarter: BrowserStarter;
  readonly endings: Endings;
  readonly watchers: Watchers;
  readonly graceMs: number;
  readonly notes: AdoptionNotes;
}

export async function adoptSessions(parts: AdoptParts): Promise<{ adopted: number; ended: number; swept: number }> {
  const rows = await parts.rows.ofHost(parts.host);
  const refusalReasons = new Map(
    rows.map(row => [row.id, isExclusive(row) ? TYPED_CREDENTIALS_REASON : parts.notes.refusal(row.id)]),
  );
  const adoptedSessions = new Map<SessionId, LiveSession>();
  const queue = [...rows];
  const adoptFromQueue = async (): Promise<void> => {
    for (let row = queue.shift(); row; row = queue.shift()) {
      const live = refusalReasons.get(row.id) === undefined ? await adopt(parts, row) : undefined;
      if (live) adoptedSessions.set(row.id, live);
    }
  };
  await Promise.all(Array.from({ length: ADOPTIONS_AT_ONCE_MAX }, adoptFromQueue));
  const adoptedBoxIds = new Set(rows.filter(row => adoptedSessions.has(row.id)).map(boxIdOf));
  const unadoptedRows = rows.filter(row => !adoptedSessions.has(row.id));
  const endOf = (row: SessionRow): SessionEnd => row.end ?? endOfUnadopted(row, refusalReasons.get(row.id));
  const rowByBoxId = new Map<string, SessionRow>();
  for (const row of unadoptedRows) {
    const decidedRow = await parts.rows.decideEnd(row.id, endOf(row), parts.clock.now());
    if (decidedRow) rowByBoxId.set(boxIdOf(row), decidedRow);
  }
  const sweptBoxes = await parts.browserHost.slots.sweep(adoptedBoxIds, async (box, leftovers) => {
    const row = rowByBoxId.get(box);
    if (row) await parts.watchers.salvage(row, leftovers);
  });
  for (const row of unadoptedRows) {
    await parts.endings.complete(row.id, endOf(row));
    parts.notes.settle(row.id);
  }
  await parts.rows.resumeTimers(parts.host, addMs(parts.clock.now(), parts.graceMs));
  for (const live of adoptedSessions.values()) live.presence.startGrace(parts.graceMs);
  const report = { adopted: adoptedSessions.size, ended: rows.length - adoptedSessions.size, swept: sweptBoxes.length };
  if (rows.length + sweptBoxes.length > 0) parts.log.info('service.adopted', report);
  return report;
}

async function adopt(parts: AdoptParts, row: SessionRow): Promise<LiveSession | undefined> {
  const record = boxRecordOf(row.box);
  if (row.status !== 'RUNNING' || row.end || !record) return undefined;
  try {
    return await parts.notes.runAdoption(row.id, async () => {
      const live = await parts.browserStarter.adopt(row, boxIdOf(row), record);
      if (live) parts.endings.watch(live);
      return live;
    });
  } catch (error) {
    parts.log.warn('session.adopt_failed', { sessionId: row.id, reason: reason(error) });
    return undefined;
  }
}

const endOfUnadopted = (row: SessionRow, refusalReason: string | undefined): DecidedEnd => ({
  status: 'ERROR',
  reason: 'service_restart',
  detail:
    refusalReason ??
    (row.status === 'PENDING'
      ? 'the service stopped while the browser was starting'
      : 'the browser did not survive the restart of the service'),
});

/** A box that was started for its session has the id of the session. A box from the warm pool has another id. */
const boxIdOf = (row: SessionRow): SessionId => (typeof row.box?.id === 'string' ? (row.box.id as SessionId) : row.id);

/**
 * Reads the box record that engines/slots wrote into the row. Undefined if the row contains anything else, because such
 * a box cannot be adopted.
 */
function boxRecordOf(box: JsonObject | undefined): BoxRecord | undefined {
  if (!box) return undefined;
  const { form, slot, pid, startTicks, bootId } = box;
  if (form !== 'root' && form !== 'rootless' && form !== 'process') return undefined;
  if (typeof slot !== 'number' || typeof pid !== 'number') return undefined;
  if (typeof startTicks !== 'string' || typeof bootId !== 'string') return undefined;
  return { form, slot, pid, startTicks, bootId };
}
