// Wiring of recordings: the recorder in the data folder, the stores behind it, and its background tasks.
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { Links } from '../domain/files/links.ts';
import type { Forget } from '../domain/files/retention.ts';
import { Addresses } from '../domain/recordings/addresses.ts';
import { Assembler } from '../domain/recordings/assembler.ts';
import { RecordingService } from '../domain/recordings/recordings.ts';
import { type RecordingKeys, Vault } from '../domain/recordings/vault.ts';
import { recordingWatcher } from '../domain/recordings/watcher.ts';
import type { PageNumbers } from '../domain/sessions/page-numbers.ts';
import type { Watcher } from '../domain/sessions/watchers.ts';
import type { Artifacts } from '../engines/artifacts/artifacts.ts';
import {
  pictureKey,
  recordingFileKey,
  recordingInitKey,
  recordingPrefix,
  recordingSegmentKey,
} from '../engines/artifacts/keys.ts';
import { ENCODER_BOUNDS } from '../engines/recorder/ffmpeg.ts';
import { mp4Head } from '../engines/recorder/mp4.ts';
import { Pictures } from '../engines/recorder/pictures.ts';
import { Recorder } from '../engines/recorder/recorder.ts';
import type { Slots } from '../engines/slots/slots.ts';
import type { Store } from '../engines/store/store.ts';
import type { Task } from '../entry/clock/tasks.ts';
import type { Clock } from '../kit/clock.ts';
import type { HostId, SessionId } from '../kit/ids.ts';
import type { Log } from '../kit/log.ts';
import type { Scope } from '../kit/scope.ts';
import type { Workers } from '../kit/worker-pool.ts';

const ASSEMBLE_MS = 2_000;

export interface RecordingsParams {
  readonly config: Config;
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly links: Links;
  readonly slots: Slots;
  readonly pages: PageNumbers;
  readonly workers: Workers;
  readonly host: HostId;
  readonly clock: Clock;
  readonly log: Log;
  readonly scope: Scope;
  readonly lookIn: (task: Task, ms: number) => void;
}

export interface OpenedRecordings {
  readonly watcher: Watcher;
  readonly service: RecordingService;
  readonly pictures: Pictures;
  readonly addresses: Addresses;
  readonly tasks: readonly Task[];
  /** Its files were deleted. */
  readonly forget: Forget;
  /** After adoption: stores what earlier processes left of sessions that have ended. */
  recover(): Promise<void>;
}

export async function openRecordings(params: RecordingsParams): Promise<OpenedRecordings> {
  const { config, store, artifacts, links, slots, pages, workers, host, clock, log, scope, lookIn } = params;
  const rows = store.recordings;
  const keys: RecordingKeys = {
    init: recordingInitKey,
    segment: recordingSegmentKey,
    file: recordingFileKey,
    picture: pictureKey,
    all: (app, session) => artifacts.list(recordingPrefix(app, session)),
  };
  const addresses = new Addresses({ artifacts, keys, links });
  const vault = new Vault({ rows, sessions: store.sessions, artifacts, keys });
  const folder = join(config.dataDir, 'recordings');
  const recorder = scope.own(
    await Recorder.open({
      ...{ folder, sink: vault, workers, clock, log },
      confine: (program, args) => slots.helper(program, args, ENCODER_BOUNDS),
      ...(config.ffmpeg ? { ffmpegPath: config.ffmpeg } : {}),
    }),
  );
  const pictures = new Pictures(recorder, clock);
  const { ffmpeg } = recorder;
  const assembler = new Assembler({ rows, artifacts, keys, vault, ffmpeg, mp4Head, host, clock, log });
  const assemble: Task = { name: 'assemble', everyMs: ASSEMBLE_MS, run: () => assembler.tend() };
  const prompt = (): void => lookIn(assemble, 0);
  return {
    watcher: recordingWatcher({ recorder, vault, pages, rows, events: store.events, clock, log }),
    service: new RecordingService({
      rows,
      sessions: store.sessions,
      artifacts,
      pictureKey,
      lookedAt: session => recorder.lookedAt(session),
      settled: session => recorder.settled(session),
      newestPicture: session => pictures.newestOf(session),
      addresses,
      prompt,
      keptMs: config.kept.filesMs,
      host,
      clock,
    }),
    pictures,
    addresses,
    tasks: [assemble],
    forget: async (_app, session) => {
      await rows.forget(session);
      vault.forget(session);
    },
    recover: async () => {
      for (const session of await recorder.leftovers()) await recorder.finish(session as SessionId);
    },
  };
}
