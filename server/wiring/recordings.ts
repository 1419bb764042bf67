// The wiring of recordings: the recorder, which writes to the data folder, the storage of segments, and the task that
// assembles MP4 files.
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { RowCleanup } from '../domain/files/retention.ts';
import { Addresses } from '../domain/recordings/addresses.ts';
import { Assembler } from '../domain/recordings/assembler.ts';
import { RecordingService } from '../domain/recordings/recordings.ts';
import { type RecordingKeys, RecordingStorage } from '../domain/recordings/storage.ts';
import { recordingWatcher } from '../domain/recordings/watcher.ts';
import type { PageNumbers } from '../domain/sessions/page-numbers.ts';
import type { Artifacts } from '../engines/artifacts/artifacts.ts';
import {
  pictureKey,
  recordingFileKey,
  recordingInitKey,
  recordingPrefix,
  recordingSegmentKey,
} from '../engines/artifacts/keys.ts';
import { ENCODER_BOUNDS } from '../engines/recorder/ffmpeg.ts';
import { LiveFrames } from '../engines/recorder/live-frames.ts';
import { mp4Head } from '../engines/recorder/mp4.ts';
import { SEGMENT_MS } from '../engines/recorder/page-journal.ts';
import { Recorder } from '../engines/recorder/recorder.ts';
import type { Store } from '../engines/store/store.ts';
import { reason } from '../kit/fault.ts';
import type { SessionId } from '../kit/ids.ts';
import { processorShare } from '../kit/processor-share.ts';
import type { Runtime } from '../kit/runtime.ts';
import { REST_INTERVAL_MS } from '../kit/task.ts';
import { withTimeout } from '../kit/wait.ts';
import type { Foundation } from './foundation.ts';

const ASSEMBLE_TASK = 'assemble';
const ASSEMBLE_INTERVAL_MS = 2_000;
/**
 * On a machine with one processor, encoders run while at most this share of the processor is busy. On a machine with
 * several processors, encoders run while at least one processor is free.
 */
const BUSY_SHARE_LIMIT_MIN = 0.25;
/**
 * The maximum time that a drain waits for recordings to be stored. Recordings that are not stored by then are stored at
 * the next start on this data folder.
 */
const STORE_TIMEOUT_MS = 30_000;

export async function openRecordings(runtime: Runtime, foundation: Foundation, pages: PageNumbers) {
  const { host, clock, log } = runtime;
  const { config, store, staging, artifacts, links, tallies } = foundation;
  const { recordings: rows, sessions, events, retention } = store;
  const keys = keysIn(artifacts);
  const addresses = new Addresses({ artifacts, keys, links });
  const storage = new RecordingStorage({ rows, retention, artifacts, keys, clock });
  const recorder = await openRecorder(runtime, foundation, storage);
  const liveFrames = new LiveFrames(recorder, clock, foundation.workers);
  const { ffmpeg } = recorder;
  const assembler = new Assembler({ rows, artifacts, keys, storage, staging, ffmpeg, mp4Head, host, clock, log });
  return {
    service: new RecordingService({
      ...{ rows, sessions, artifacts, pictureKey, addresses, host, clock, tallies },
      markWatched: session => recorder.markWatched(session),
      whenSettled: session => recorder.whenSettled(session),
      newestPicture: session => liveFrames.newestJpegOf(session),
      trigger: () => foundation.trigger(ASSEMBLE_TASK),
      segmentMs: SEGMENT_MS,
      keptMs: config.retention.filesMs,
    }),
    watcher: recordingWatcher({ recorder, storage, pages, rows, events, clock, log }),
    tasks: [
      {
        name: ASSEMBLE_TASK,
        everyMs: ASSEMBLE_INTERVAL_MS,
        restMs: REST_INTERVAL_MS,
        run: () => assembler.reconcile(),
      },
    ],
    unstored: () => recorder.unstoredCount,
    /**
     * Stores all recordings. Called before the process ends for good, because a host that is removed loses its data
     * folder.
     */
    storeAll: () =>
      withTimeout(STORE_TIMEOUT_MS, 'the recordings to be stored', () => recorder.whenAllSettled()).catch(error =>
        log.warn('recording.not_stored_at_drain', { reason: reason(error) }),
      ),
    recover: async () => {
      for (const session of await recorder.listLeftovers()) await recorder.finish(session as SessionId);
    },
    liveFrames,
    addresses,
    typingPageOf: (session: SessionId) => recorder.sessionOf(session),
  };
}

async function openRecorder(
  { clock, log }: Runtime,
  foundation: Foundation,
  sink: RecordingStorage,
): Promise<Recorder> {
  const { config, slots, workers, scope } = foundation;
  const folder = join(config.dataDir, 'recordings');
  const readBusyShare = processorShare();
  const busyShareLimit = Math.max(BUSY_SHARE_LIMIT_MIN, 1 - 1 / availableParallelism());
  return scope.own(
    await Recorder.open({
      ...{ folder, sink, workers, clock, log },
      confine: (program, args) => slots.helper(program, args, ENCODER_BOUNDS),
      isQuiet: () => readBusyShare() <= busyShareLimit,
      ...(config.ffmpeg ? { ffmpegPath: config.ffmpeg } : {}),
    }),
  );
}

const keysIn = (artifacts: Artifacts): RecordingKeys => ({
  init: recordingInitKey,
  segment: recordingSegmentKey,
  file: recordingFileKey,
  picture: pictureKey,
  all: (app, session) => artifacts.list(recordingPrefix(app, session)),
});

/** Deletes the rows of a recording whose files were removed. */
export const forgetRecording =
  ({ recordings }: Pick<Store, 'recordings'>): RowCleanup =>
  async (_app, session) =>
    recordings.forget(session);
