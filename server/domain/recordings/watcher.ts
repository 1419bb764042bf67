// Records sessions for which recording is turned on, from before the first client connects until the session ends.
// Continues the recordings of an earlier process.
import type { Recorder, Shortfall } from '../../engines/recorder/recorder.ts';
import type { EventRows } from '../../engines/store/rows/events.ts';
import type { RecordingRows } from '../../engines/store/rows/recordings.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Attendance } from '../sessions/attendance.ts';
import type { LiveSession } from '../sessions/live.ts';
import type { PageNumbers } from '../sessions/page-numbers.ts';
import type { Watcher } from '../sessions/watchers.ts';
import type { RecordingStorage } from './storage.ts';

export interface RecordingWatcherParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly recorder: Recorder;
  readonly storage: Pick<RecordingStorage, 'picture'>;
  readonly pages: PageNumbers;
  readonly rows: Pick<RecordingRows, 'recordOmission'>;
  readonly events: Pick<EventRows, 'append'>;
}

export const isRecorded = (row: SessionRow): boolean => row.settings.recordSession !== false;

export const recordingWatcher = (parts: RecordingWatcherParts): Watcher => ({
  name: 'recording',
  attend: async (liveSession, row) => (isRecorded(row) ? attendSession(parts, liveSession, row) : undefined),
  salvage: async row => {
    if (!isRecorded(row)) return;
    const { recorder, storage, log } = parts;
    const newestPicture = recorder.sessionOf(row.id)?.newest;
    // Not awaited, because the session ends even if its last picture cannot be stored.
    if (newestPicture)
      storage
        .picture(row.id, newestPicture.jpeg)
        .catch(error => log.warn('recording.picture_not_kept', { sessionId: row.id, reason: reason(error) }));
    await recorder.finish(row.id);
  },
  // `salvage` is not called for a session whose start failed, so its recording is finished here.
  ended: ({ id }) => {
    const { recorder, log } = parts;
    if (recorder.sessionOf(id))
      recorder.finish(id).catch(error => log.warn('recording.not_ended', { sessionId: id, reason: reason(error) }));
  },
});

async function attendSession(
  parts: RecordingWatcherParts,
  liveSession: LiveSession,
  row: SessionRow,
): Promise<Attendance> {
  const { recorder, clock, log } = parts;
  const pages = await parts.pages.of(liveSession, row);
  const shortfalls = new Shortfalls(parts, row.id);
  const { secrets } = liveSession;
  const recording = await recorder.record({
    session: row.id,
    maskKind: maskKindOf(row),
    secrets,
    reportShortfall: shortfalls.report,
  });
  // Registered before the first frame, because an adopted session may be in a hand-off.
  const coverSubscription = liveSession.onCover(cover => {
    recording.setPageCover(cover).catch(error => log.warn('recording.cover_failed', { reason: reason(error) }));
  });
  const presentTargets = new Set<string>();
  const targetSubscription = await liveSession.browser.observe({
    target: target => {
      if (target.kind === 'iframe') return recording.addFrame(target);
      if (target.kind !== 'page') return;
      const page = pages.of(target);
      if (page === undefined) return shortfalls.report('too_many_in_all', target.id);
      presentTargets.add(target.id);
      recording.recordPage(target, page, { at: pages.appearedAt(target.id) ?? clock.now() });
    },
  });
  // Ends the recording of pages that an earlier process recorded and that no longer exist.
  await recording.settle(presentTargets);
  return {
    leave: async () => {
      coverSubscription.close();
      recording.pause();
      await Promise.resolve(targetSubscription.close()).catch(error =>
        log.warn('recording.leave_failed', { reason: reason(error) }),
      );
    },
  };
}

/** Reports omissions from a recording: each reason once as an event, and each omitted page in the list of replays. */
class Shortfalls {
  readonly #parts: RecordingWatcherParts;
  readonly #session: SessionId;
  readonly #reportedReasons = new Set<string>();

  constructor(parts: RecordingWatcherParts, session: SessionId) {
    this.#parts = parts;
    this.#session = session;
  }

  readonly report = (why: Shortfall | 'too_many_in_all', targetId?: string, page?: number): void => {
    const { rows, events, clock } = this.#parts;
    if (targetId && (why === 'too_many_at_once' || why === 'too_many_in_all'))
      this.#track(rows.recordOmission(this.#session, { why, targetId, ...(page === undefined ? {} : { page }) }));
    if (this.#reportedReasons.has(why)) return;
    this.#reportedReasons.add(why);
    const detail = { reason: why, ...(page === undefined ? {} : { pageId: String(page) }) };
    const event = { type: 'recording.limited', at: clock.now(), actor: { kind: 'service' }, detail } as const;
    this.#track(events.append(this.#session, event));
  };

  #track(pendingWrite: Promise<void>): void {
    const { log } = this.#parts;
    pendingWrite.catch(error =>
      log.warn('recording.shortfall_not_written', { sessionId: this.#session, reason: reason(error) }),
    );
  }
}

function maskKindOf({ settings }: SessionRow): 'password' | 'all' | 'none' {
  const { maskInputs } = settings;
  return maskInputs === 'all' || maskInputs === 'none' ? maskInputs : 'password';
}
