// Records sessions that are to be recorded, from before the first client to after the last; also those that a former
// process recorded.
import type { Recorder } from '../../engines/recorder/recorder.ts';
import type { EventRows, SessionRow } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { LiveSession } from '../sessions/live.ts';
import type { PageNumbers } from '../sessions/page-numbers.ts';
import type { Attendance, Watcher } from '../sessions/watchers.ts';
import type { Vault } from './vault.ts';

export interface RecordingWatcherParts {
  readonly recorder: Recorder;
  readonly vault: Pick<Vault, 'picture'>;
  readonly pages: PageNumbers;
  readonly events: Pick<EventRows, 'append'>;
  readonly clock: Clock;
  readonly log: Log;
}

export const isRecorded = (row: SessionRow): boolean => row.settings.recordSession !== false;

export const recordingWatcher = (parts: RecordingWatcherParts): Watcher => ({
  name: 'recording',
  attend: async (live, row) => (isRecorded(row) ? attend(parts, live, row) : undefined),
  salvage: async row => {
    if (!isRecorded(row)) return;
    const { recorder, vault, log } = parts;
    const newest = recorder.sessionOf(row.id)?.newest;
    // Nobody waits for it: a session without its last picture has ended all the same.
    if (newest)
      vault
        .picture(row.id, newest.jpeg)
        .catch(error => log.warn('recording.picture_not_kept', { sessionId: row.id, reason: reason(error) }));
    await recorder.finish(row.id);
  },
});

async function attend(parts: RecordingWatcherParts, live: LiveSession, row: SessionRow): Promise<Attendance> {
  const { recorder, log } = parts;
  const pages = await parts.pages.of(live, row);
  const recording = await recorder.record({
    session: row.id,
    masks: masksOf(row),
    tooMany: () => log.info('recording.too_many_pages', { sessionId: row.id }),
  });
  const present = new Set<string>();
  const observing = await live.browser.observe({
    target: target => {
      if (target.kind === 'iframe') return recording.frame(target);
      const page = target.kind === 'page' ? pages.of(target) : undefined;
      if (page === undefined) return;
      present.add(target.id);
      recording.target(target, page);
    },
  });
  // What was recorded by a former process and is not there any more has ended.
  await recording.settle(present);
  return {
    leave: async () => {
      recording.pause();
      await Promise.resolve(observing.close()).catch(error =>
        log.warn('recording.leave_failed', { reason: reason(error) }),
      );
    },
  };
}

function masksOf({ settings }: SessionRow): 'password' | 'all' | 'none' {
  const { maskInputs } = settings;
  return maskInputs === 'all' || maskInputs === 'none' ? maskInputs : 'password';
}
