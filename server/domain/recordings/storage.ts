// Stores recordings: each segment first as an artifact, then as a row, so that a row never names a missing artifact.
// Every step may be repeated.
import { createHash } from 'node:crypto';
import type { Artifacts } from '../../engines/artifacts/artifacts.ts';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { RecordedPage, RecordingSink, Span } from '../../engines/recorder/page-recording.ts';
import type { Segment } from '../../engines/recorder/pipeline.ts';
import type { RecordingRows } from '../../engines/store/rows/recordings.ts';
import type { RetentionRows } from '../../engines/store/rows/retention.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';

/** Names the artifacts of a recording. */
export interface RecordingKeys {
  init(app: ApplicationId, session: SessionId, page: number, run: number): ArtifactKey;
  segment(app: ApplicationId, session: SessionId, page: number, sequence: number): ArtifactKey;
  picture(app: ApplicationId, session: SessionId): ArtifactKey;
  file(app: ApplicationId, session: SessionId, page: number, assembly: string): ArtifactKey;
  all(app: ApplicationId, session: SessionId): AsyncIterable<ArtifactKey>;
}

export interface RecordingStorageParts extends Pick<Runtime, 'clock'> {
  readonly rows: RecordingRows;
  readonly retention: Pick<RetentionRows, 'applicationIfKept'>;
  readonly artifacts: Artifacts;
  readonly keys: RecordingKeys;
}

export class RecordingStorage implements RecordingSink {
  readonly #parts: RecordingStorageParts;
  /** The applications of the sessions that are being recorded. */
  readonly #applications = new Map<string, ApplicationId>();
  /** The init segment last stored for each page that is being recorded. Avoids a look-up in the store per segment. */
  readonly #storedInits = new Map<string, ArtifactKey>();

  constructor(parts: RecordingStorageParts) {
    this.#parts = parts;
  }

  /**
   * The application of the session. Undefined if the session was deleted together with its recording, or if its files
   * are due for deletion. If a killed server left unstored data of such a session, the data is not stored, because
   * nothing would delete it.
   */
  applicationOf(session: string): Promise<ApplicationId | undefined> {
    const { retention, clock } = this.#parts;
    return retention.applicationIfKept(session as SessionId, clock.now());
  }

  async began({ session, page }: RecordedPage, startedAt: Date): Promise<void> {
    if (await this.#applicationOfRecording(session))
      await this.#parts.rows.insertPage(session as SessionId, page, startedAt);
  }

  async keep({ session, page }: RecordedPage, segment: Segment): Promise<void> {
    const { rows, artifacts, keys } = this.#parts;
    const app = await this.#applicationOfRecording(session);
    if (!app) return;
    const id = session as SessionId;
    const run = await this.#run(app, id, page, segment.init);
    await artifacts.put(keys.segment(app, id, page, segment.sequence), chunk(segment.bytes), SEGMENT_TYPE);
    const { sequence, startMs, durationsMs, sizes, size, payloadAt, bytes } = segment;
    await rows.addSegment({
      ...{ sessionId: id, page, sequence, run, startMs, ...size, payloadAt, bytes: bytes.length },
      durationMs: durationsMs.reduce((sum, ms) => sum + ms, 0),
      samples: { durationsMs, sizes },
    });
  }

  /** Stores the last picture of the session. */
  async picture(session: string, jpeg: Buffer): Promise<void> {
    const { artifacts, keys } = this.#parts;
    const app = await this.applicationOf(session);
    if (app) await artifacts.put(keys.picture(app, session as SessionId), chunk(jpeg), { contentType: 'image/jpeg' });
  }

  async span({ session, page }: RecordedPage, span: Span): Promise<void> {
    if (span.toMs !== undefined && span.toMs <= span.fromMs) return;
    if (await this.#applicationOfRecording(session)) await this.#parts.rows.addSpan(session as SessionId, page, span);
  }

  async endSpans({ session, page }: RecordedPage, atMs: number): Promise<void> {
    if (await this.#applicationOfRecording(session)) await this.#parts.rows.endSpans(session as SessionId, page, atMs);
  }

  async done({ session, page }: RecordedPage): Promise<void> {
    if (await this.#applicationOfRecording(session)) await this.#parts.rows.markStored(session as SessionId, page);
    this.#applications.delete(session);
    this.#storedInits.delete(pageKey(session, page));
  }

  /** The application of a session that is being recorded. Cached, because this is called for each segment. */
  async #applicationOfRecording(session: string): Promise<ApplicationId | undefined> {
    const applicationId = this.#applications.get(session) ?? (await this.applicationOf(session));
    if (applicationId) this.#applications.set(session, applicationId);
    return applicationId;
  }

  /**
   * Returns the id of the page's run with this init segment. Creates the run and stores the init segment if they do not
   * exist yet. The segments of a page with the same frame size have equal init segments and share a run.
   */
  async #run(app: ApplicationId, session: SessionId, page: number, init: Buffer): Promise<number> {
    const { rows, artifacts, keys } = this.#parts;
    const checksum = createHash('sha256').update(init).digest('hex');
    const run = (await rows.runOf(session, page, checksum)) ?? (await rows.addRun(session, page, checksum));
    const key = keys.init(app, session, page, run);
    // The row is written first, because it assigns the number. If an earlier attempt failed after it had written the
    // row, the artifact is still missing.
    if (this.#storedInits.get(pageKey(session, page)) === key) return run;
    if (!(await artifacts.stat(key))) await artifacts.put(key, chunk(init), SEGMENT_TYPE);
    this.#storedInits.set(pageKey(session, page), key);
    return run;
  }
}

const pageKey = (session: string, page: number): string => `${session}/${page}`;

const SEGMENT_TYPE = { contentType: 'video/mp4' };

async function* chunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
