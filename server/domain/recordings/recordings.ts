// The API operations on recordings: replays as playlists, and MP4 files that are assembled on request.
import { randomUUID } from 'node:crypto';
import type { RecordingDownload } from '../../../contract/recordings.ts';
import { FILE_REQUESTS_PER_MINUTE_MAX, PLAYLISTS_PER_MINUTE_MAX } from '../../../contract/recordings.ts';
import type { Artifacts } from '../../engines/artifacts/artifacts.ts';
import type { RecordedPageRow, RecordingFileRow, RecordingRows, SpanRow } from '../../engines/store/rows/recordings.ts';
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { addMs } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { withTimeout } from '../../kit/wait.ts';
import { fault, invalidRequest } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { SharedTallies, SharedTally } from '../limits/shared-tally.ts';
import { hasEnded, requireSession } from '../sessions/session.ts';
import type { Addresses } from './addresses.ts';
import type { Recordings } from './api.ts';
import { playlist } from './playlist.ts';
import type { RecordingKeys } from './storage.ts';
import { isRecorded } from './watcher.ts';

const DAY_MS = 86_400_000;
const LINK_LIFETIME_MS = 6 * 3_600_000;
/** Addresses in a playlist stay the same for this long, and are valid for six more hours. */
const LINK_PERIOD_MS = 1_800_000;
const PAGE_ID_PATTERN = /^\d{1,3}$/;
const STORE_RESPONSE_TIMEOUT_MS = 5_000;
/** How long the first request for the recording of a running session waits for segments that are not encoded yet. */
const ENCODE_WAIT_MAX_MS = 3_000;
/** How long a request after the end of a session waits until the whole recording is stored. */
const SETTLE_WAIT_MAX_MS = 10_000;
/** Shown instead of the stored reason, which contains keys of artifacts that mean nothing to a caller. */
const FILE_FAILED_MESSAGE = 'The file could not be assembled. Request it again.';
const PER_MINUTE_LIMIT = { withinMs: 60_000, scope: 'application' } as const;

export interface RecordingsParts extends Pick<Runtime, 'clock' | 'host'> {
  readonly rows: RecordingRows;
  readonly sessions: Pick<SessionRows, 'get'>;
  readonly artifacts: Pick<Artifacts, 'stat' | 'read'>;
  readonly pictureKey: RecordingKeys['picture'];
  /** Undefined if the session is not running in this process. */
  readonly newestPicture: (session: SessionId) => Buffer | undefined;
  /**
   * Called when the recording of the session is requested. Resolves when the segments whose encoding was delayed are
   * stored, or at once if the recording was also requested within the last minute.
   */
  readonly markWatched: (session: SessionId) => Promise<void>;
  /**
   * Resolves with true when the whole recording of an ended session is stored, or with false if it could not be stored.
   */
  readonly whenSettled: (session: SessionId) => Promise<boolean>;
  readonly addresses: Addresses;
  /** Length of a full segment. */
  readonly segmentMs: number;
  /** Starts the assembly, because a file was requested. */
  readonly trigger: () => void;
  /** How long recordings are kept after the end of the session. */
  readonly keptMs: number;
  readonly tallies: Pick<SharedTallies, 'of'>;
}

interface ReplayPage extends RecordedPageRow {
  readonly lengthMs: number;
}

export class RecordingService implements Recordings {
  readonly #parts: RecordingsParts;
  readonly #playlistTally: SharedTally;
  readonly #assemblyTally: SharedTally;

  constructor(parts: RecordingsParts) {
    this.#parts = parts;
    this.#playlistTally = parts.tallies.of({
      ...PER_MINUTE_LIMIT,
      name: 'playlists',
      what: 'requests for playlists',
      max: PLAYLISTS_PER_MINUTE_MAX,
    });
    this.#assemblyTally = parts.tallies.of({
      ...PER_MINUTE_LIMIT,
      name: 'recordings',
      what: 'requests for recordings',
      max: FILE_REQUESTS_PER_MINUTE_MAX,
    });
  }

  async replays(caller: AgentCaller, sessionId: string): ReturnType<Recordings['replays']> {
    const session = await this.#session(caller, sessionId);
    const isSettled = await this.#waitForSegments(session);
    const pages = await this.#watchablePages(session);
    if (pages.length === 0 && isSettled) throw noReplay('none');
    const spans = await this.#parts.rows.spans(session.id);
    const omissions = await this.#parts.rows.omissions(session.id);
    const recordingStartMs = Math.min(...pages.map(({ startedAt }) => startedAt.getTime()));
    const recordingEnd = session.endedAt ?? this.#parts.clock.now();
    return {
      pages: pages.map(page => {
        const startTimeMs = page.startedAt.getTime() - recordingStartMs;
        const gaps = gapsOf(spans, page, startTimeMs, recordingEnd.getTime() - page.startedAt.getTime());
        return {
          pageId: String(page.page),
          startTimeMs,
          endTimeMs: startTimeMs + page.lengthMs,
          ...(gaps.length > 0 ? { gaps } : {}),
        };
      }),
      ...(omissions.length > 0 ? { notRecorded: [...omissions] } : {}),
      ...(isSettled ? {} : ({ status: 'pending' } as const)),
    };
  }

  async playlist(caller: AgentCaller, sessionId: string, pageId: string): Promise<string> {
    if (!PAGE_ID_PATTERN.test(pageId))
      throw invalidRequest([{ path: 'pageId', message: 'must be a page number with 1 to 3 digits' }]);
    await this.#playlistTally.take(caller.applicationId);
    const session = await this.#session(caller, sessionId);
    await this.#waitForSegments(session);
    const page = (await this.#watchablePages(session)).find(one => one.page === Number(pageId));
    if (!page) throw noReplay('none');
    const segments = await this.#parts.rows.segments(session.id, page.page);
    const { addresses, clock } = this.#parts;
    const expiresAt = new Date(Math.ceil(clock.now().getTime() / LINK_PERIOD_MS) * LINK_PERIOD_MS + LINK_LIFETIME_MS);
    const urlOf = (kind: 'init' | 'part') => (name: number) =>
      addresses.urlOf(session.applicationId, { session: session.id, page: page.page, kind, name }, expiresAt);
    const runs = [...new Set(segments.map(({ run }) => run))];
    const initUrls = await urlsByKey(runs, urlOf('init'));
    const segmentUrls = await urlsByKey(
      segments.map(({ sequence }) => sequence),
      urlOf('part'),
    );
    return playlist({
      segments,
      segmentMs: this.#parts.segmentMs,
      startedAt: page.startedAt,
      // Segments that a lost host had not stored may never arrive.
      isComplete: page.stored || session.end?.reason === 'host_lost',
      initUrl: run => initUrls.get(run) ?? '',
      segmentUrl: sequence => segmentUrls.get(sequence) ?? '',
    });
  }

  async picture(caller: AgentCaller, sessionId: string): Promise<Buffer | undefined> {
    const session = await this.#session(caller, sessionId);
    const { artifacts, pictureKey, newestPicture } = this.#parts;
    if (!hasEnded(session)) return newestPicture(session.id);
    if (!isRecorded(session) || this.#isExpired(session)) return undefined;
    return artifacts.read(pictureKey(session.applicationId, session.id));
  }

  async requestFiles(caller: AgentCaller, sessionId: string): Promise<RecordingDownload[]> {
    const session = await this.#session(caller, sessionId);
    const pages = await this.#endedPages(session);
    await this.#assemblyTally.take(caller.applicationId);
    await this.#assertStoreReachable(session, pages);
    const { rows, host, clock, trigger } = this.#parts;
    const requestedAt = clock.now();
    for (const { page } of pages)
      await rows.requestFile({ sessionId: session.id, page, hostId: host, assembly: randomUUID(), requestedAt });
    trigger();
    return pages.map(({ page }) => ({ pageId: String(page), status: 'PENDING' }));
  }

  async files(caller: AgentCaller, sessionId: string): Promise<RecordingDownload[]> {
    const session = await this.#session(caller, sessionId);
    const pages = await this.#endedPages(session);
    const files = await this.#parts.rows.files(session.id);
    return Promise.all(
      pages.map(({ page }) =>
        this.#file(
          session,
          page,
          files.find(file => file.page === page),
        ),
      ),
    );
  }

  async #file(session: SessionRow, page: number, file: RecordingFileRow | undefined): Promise<RecordingDownload> {
    const pageId = String(page);
    if (!file) return { pageId, status: 'NOT_REQUESTED' };
    if (file.state === 'FAILED') return { pageId, status: file.state, error: FILE_FAILED_MESSAGE };
    if (file.state !== 'COMPLETED' || !file.completedAt) return { pageId, status: file.state };
    const { addresses, clock } = this.#parts;
    const expiresAt = addMs(clock.now(), LINK_LIFETIME_MS);
    const artifact = { session: session.id, page, kind: 'file', name: file.assembly } as const;
    const downloadUrl = await addresses.urlOf(session.applicationId, artifact, expiresAt);
    return {
      pageId,
      status: 'COMPLETED',
      completedAt: file.completedAt.toISOString(),
      downloadUrl,
      downloadUrlExpiresAt: expiresAt.toISOString(),
      ...(file.size === undefined ? {} : { size: file.size }),
    };
  }

  #session({ applicationId }: AgentCaller, id: string): Promise<SessionRow> {
    return requireSession(this.#parts.sessions, applicationId, id);
  }

  /**
   * Waits for the segments of the session. Segments that are not encoded in time follow in a later response. Returns
   * false if an ended session still has segments to store.
   */
  async #waitForSegments(session: SessionRow): Promise<boolean> {
    if (hasEnded(session)) return !this.#isKept(session) || this.#isSettled(session);
    await withTimeout(ENCODE_WAIT_MAX_MS, 'the recording to be encoded', () =>
      this.#parts.markWatched(session.id),
    ).catch(() => {});
    return true;
  }

  #isSettled({ id }: SessionRow): Promise<boolean> {
    return withTimeout(SETTLE_WAIT_MAX_MS, 'the recording to be stored', () => this.#parts.whenSettled(id)).catch(
      () => false,
    );
  }

  /** Whether the session was recorded and its recording has not expired. */
  #isKept(session: SessionRow): boolean {
    return isRecorded(session) && !this.#isExpired(session);
  }

  /** Pages with at least one stored segment. */
  async #pages(session: SessionRow): Promise<ReplayPage[]> {
    const { rows } = this.#parts;
    const lengthByPage = await rows.lengths(session.id);
    return (await rows.pages(session.id)).flatMap(page => {
      const lengthMs = lengthByPage.get(page.page);
      return lengthMs === undefined ? [] : [{ ...page, lengthMs }];
    });
  }

  async #watchablePages(session: SessionRow): Promise<ReplayPage[]> {
    if (!isRecorded(session)) throw noReplay('disabled');
    if (this.#isExpired(session)) throw noReplay('expired');
    return this.#pages(session);
  }

  /** The order of refusals is part of the contract: disabled, running, expired, nothing recorded. */
  async #endedPages(session: SessionRow): Promise<ReplayPage[]> {
    const { keptMs } = this.#parts;
    if (!isRecorded(session)) throw fault('recording_disabled', 'Recording was disabled for this session');
    if (!hasEnded(session))
      throw fault('session_not_ended', `Session ${session.id} has not ended.`, {
        advice: 'Release it, and send the request again once it has ended.',
      });
    if (this.#isExpired(session))
      throw fault(
        'recording_expired',
        `The recording of this session was deleted ${keptMs / DAY_MS} days after the session ended.`,
        {
          advice: `The recording cannot be restored. Download future recordings within ${keptMs / DAY_MS} days of the end of the session.`,
        },
      );
    if (!(await this.#isSettled(session)))
      throw fault('session_not_ended', `The recording of session ${session.id} is still being stored.`, {
        advice: 'Send the request again in a few seconds.',
      });
    const pages = await this.#pages(session);
    if (pages.length === 0)
      throw fault('recording_not_found', `Session ${session.id} has no recording.`, {
        advice: 'Nothing was recorded in this session. Do not send the request again.',
      });
    return pages;
  }

  #isExpired({ endedAt }: SessionRow): boolean {
    return endedAt !== undefined && this.#parts.clock.now().getTime() - endedAt.getTime() > this.#parts.keptMs;
  }

  async #assertStoreReachable({ applicationId, id }: SessionRow, [first]: readonly ReplayPage[]): Promise<void> {
    const { artifacts, addresses } = this.#parts;
    const key = addresses.key(applicationId, { session: id, page: first?.page ?? 0, kind: 'init', name: 0 });
    await withTimeout(STORE_RESPONSE_TIMEOUT_MS, 'the recording storage', () => artifacts.stat(key)).catch(error => {
      throw fault('recording_service_unavailable', 'The recording storage is unreachable or returned an error.', {
        advice: 'The request had no effect. Send it again later.',
        cause: error,
      });
    });
  }
}

const noReplay = (why: 'disabled' | 'none' | 'expired') =>
  fault('replay_not_found', 'Replay not found', { details: { reason: why } });

/**
 * Returns the gaps in the recording of a page. Hidden periods are included up to the last stored segment, and missing
 * periods also after it. `untilMs` is the end of the session, or now.
 */
const gapsOf = (spans: readonly SpanRow[], { page, lengthMs }: ReplayPage, startTimeMs: number, untilMs: number) =>
  spans
    .filter(span => span.page === page && (span.kind === 'missing' || span.fromMs < lengthMs))
    .map(({ kind, fromMs, toMs }) => {
      const endMs = kind === 'hidden' ? Math.min(toMs ?? lengthMs, lengthMs) : (toMs ?? Math.max(untilMs, fromMs));
      return { startTimeMs: startTimeMs + fromMs, endTimeMs: startTimeMs + endMs, why: kind };
    });

async function urlsByKey<T>(keys: readonly T[], value: (key: T) => Promise<string>): Promise<Map<T, string>> {
  return new Map(await Promise.all(keys.map(async key => [key, await value(key)] as const)));
}
