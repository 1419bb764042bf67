// Tests how the journals of pages become recordings. A recording of 60 seconds plays for 60 seconds, every frame
// appears at the correct time, and playback tools accept the result. Also tests pages whose size changes, and a full
// disk. Uses no browser: ffmpeg generates the frames.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import HLS from 'hls-parser';
import { playlist } from '../../server/domain/recordings/playlist.ts';
import type { TargetChannel } from '../../server/engines/recorder/channel.ts';
import { EncodeQueue } from '../../server/engines/recorder/encode-queue.ts';
import { Ffmpeg } from '../../server/engines/recorder/ffmpeg.ts';
import type { Size } from '../../server/engines/recorder/matroska.ts';
import { mp4Head } from '../../server/engines/recorder/mp4.ts';
import { type CompleteRawSegment, PageFolder } from '../../server/engines/recorder/page-folder.ts';
import { PageJournal, SEGMENT_MS } from '../../server/engines/recorder/page-journal.ts';
import type { RecordedPage, Span } from '../../server/engines/recorder/page-recording.ts';
import { Pipeline, type Segment } from '../../server/engines/recorder/pipeline.ts';
import { PAGES_AT_ONCE_MAX, Recorder } from '../../server/engines/recorder/recorder.ts';
import type { SegmentRow } from '../../server/engines/store/rows/recordings.ts';
import { systemClock } from '../../server/kit/clock.ts';
import type { SessionId } from '../../server/kit/ids.ts';
import type { JsonObject } from '../../server/kit/json.ts';
import { silentLog } from '../../server/kit/log.ts';
import { SecretTexts } from '../../server/kit/secret-texts.ts';
import { WorkerPool } from '../../server/kit/worker-pool.ts';
import { durationOf, framesOf, isSimilarColour, timesOf } from '../harness/film.ts';
import { ManualClock } from '../harness/hand-clock.ts';
import { boundedHelper, jailedHelper } from '../harness/helpers.ts';
import { TestClock } from '../harness/test-clock.ts';
import { eventually } from '../harness/until.ts';

const workers = new WorkerPool();
after(() => workers.close());

const RED = [255, 0, 0] as const;
const GREEN = [0, 255, 0] as const;
const BLUE = [0, 0, 255] as const;
const LARGE_SIZE = { width: 1280, height: 720 };
const ODD_SIZE = { width: 801, height: 601 };
const MINUTE_MS = 60_000;
const SESSION = '0190a000-0000-7000-8000-000000000001' as SessionId;
const METADATA = {
  offsetTop: 0,
  pageScaleFactor: 1,
  deviceWidth: 0,
  deviceHeight: 0,
  scrollOffsetX: 0,
  scrollOffsetY: 0,
};

const encodeQueue = new EncodeQueue(new Ffmpeg(jailedHelper), systemClock, silentLog);

function makeJpeg([r, g, b]: readonly [number, number, number], { width, height }: Size): Buffer {
  const colour = `color=c=0x${Buffer.from([r, g, b]).toString('hex')}:s=${width}x${height}:d=0.04`;
  const ffmpegArgs = [
    '-v',
    'error',
    '-f',
    'lavfi',
    '-i',
    colour,
    '-frames:v',
    '1',
    '-pix_fmt',
    'yuvj420p',
    '-f',
    'mjpeg',
  ];
  const { stdout, status } = spawnSync('ffmpeg', [...ffmpegArgs, 'pipe:1']);
  assert.equal(status, 0);
  return stdout;
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-film-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const makeFrame = (atMs: number, jpeg: Buffer) => ({
  jpeg,
  browserMs: atMs,
  at: new Date(atMs),
  metadata: METADATA,
  framesAhead: 1,
});

interface Film {
  readonly segments: readonly Segment[];
  readonly lost: ReadonlyArray<readonly [number, number]>;
}

/** Records a page that shows these frames at these times and then ends. Returns what was stored. */
async function recordFilm(
  path: string,
  shownFrames: ReadonlyArray<{ readonly atMs: number; readonly jpeg: Buffer; readonly prepare?: () => void }>,
  endMs: number,
  sharedQueue?: EncodeQueue,
): Promise<Film> {
  const clock = new TestClock();
  const folder = new PageFolder(path);
  const segments: Segment[] = [];
  const lost: Array<readonly [number, number]> = [];
  const sink = {
    keep: async (segment: Segment) => void segments.push(segment),
    reportGap: async (fromMs: number, toMs: number) => void lost.push([fromMs, toMs]),
    done: async () => {},
  };
  const pipeline = new Pipeline({
    ...{ session: SESSION, folder, encodeQueue: sharedQueue ?? encodeQueue, sink, clock, log: silentLog },
    mayHoldBack: () => sharedQueue !== undefined,
  });
  const [first] = shownFrames;
  assert.ok(first);
  const listener = {
    segmentComplete: (segment: CompleteRawSegment, size: Size) => pipeline.add(segment, size),
    lost: (fromMs: number, toMs: number) => void lost.push([fromMs, toMs]),
  };
  const beginning = { first: makeFrame(first.atMs, first.jpeg), leadMs: first.atMs };
  const journal = await PageJournal.begin(folder, 'page', beginning, clock, listener);
  let nowMs = 0;
  for (const { atMs, jpeg, prepare } of shownFrames) {
    prepare?.();
    clock.advance(atMs - nowMs);
    nowMs = atMs;
    await journal.take(makeFrame(atMs, jpeg));
  }
  await journal.end(endMs);
  await pipeline.finish(Promise.resolve());
  return { segments, lost };
}

const millisecondsOf = ({ durationsMs }: Segment): number => durationsMs.reduce((sum, ms) => sum + ms, 0);

test('a page whose only frame arrives late is recorded for its full lifetime', async () => {
  const clock = new TestClock();
  const [paintedAt, browserMs] = [new Date(clock.now().getTime() - 1_500), clock.monotonicMs() - 1_500];
  const first = { ...makeFrame(browserMs, makeJpeg(RED, LARGE_SIZE)), at: paintedAt };
  const segments: CompleteRawSegment[] = [];
  const listener = { segmentComplete: (segment: CompleteRawSegment) => void segments.push(segment), lost: () => {} };
  const beginning = { first, leadMs: 400 };
  const journal = await PageJournal.begin(
    new PageFolder(join(makeFolder(), 'page')),
    'page',
    beginning,
    clock,
    listener,
  );
  await journal.take(first);
  clock.advance(3_000);
  const elapsedMs = (): number => clock.now().getTime() - journal.description.startedAt.getTime();
  const minMs = elapsedMs();
  await journal.end();
  const maxMs = elapsedMs();
  const endMs = segments.at(-1)?.endMs ?? 0;
  assert.ok(minMs >= 4_900);
  assert.ok(endMs > minMs - 500 && endMs < maxMs + 500, `${endMs}, not ${minMs} to ${maxMs}`);
});

test('a recording of one minute has the exact duration as segments and as an MP4 file, and shows each color at the right time', async () => {
  const colours = [RED, GREEN, BLUE];
  const images = colours.map(colour => makeJpeg(colour, LARGE_SIZE));
  // The page changes at irregular times, with pauses of 7 s to 14 s, and once more at the end. The first frame arrives
  // late.
  const times = [1_370, 2_003, 2_204, 9_999, 12_002, 12_003, 19_500, 33_333, 41_017, 47_999, 48_002, 59_999];
  const shownFrames = times.map((atMs, index) => ({ atMs, jpeg: images[index % 3] ?? Buffer.alloc(0) }));
  const { segments, lost } = await recordFilm(join(makeFolder(), 'page'), shownFrames, MINUTE_MS);
  assert.deepEqual(lost, []);
  assert.deepEqual(
    segments.map(segment => [segment.startMs, millisecondsOf(segment)]),
    Array.from({ length: 10 }, (_, index) => [index * 6_000, 6_000]),
  );
  const [first] = segments;
  assert.ok(first && segments.every(({ init }) => init.equals(first.init)), 'all segments have the same init segment');
  const pieces = segments.map(({ durationsMs, sizes }) => ({ durationsMs, sizes }));
  const payloads = segments.map(({ bytes, payloadAt }) => bytes.subarray(payloadAt));
  const fragmentedFilm = Buffer.concat([first.init, ...segments.map(({ bytes }) => bytes)]);
  const mp4Film = Buffer.concat([mp4Head(first.init, LARGE_SIZE, pieces).head, ...payloads]);
  assert.equal(durationOf(mp4Film).toFixed(3), '60.000');
  for (const film of [fragmentedFilm, mp4Film]) {
    const frames = framesOf(film);
    for (const [index, atMs] of times.entries()) {
      const at = index === 0 ? 0 : atMs / 1_000;
      const seen = frames.findLast(one => one.at <= at + 0.000_5);
      assert.ok(seen && isSimilarColour(seen.colour, colours[index % 3] ?? []), `${atMs} ms: ${JSON.stringify(seen)}`);
      const frameBefore = frames.findLast(one => one.at < at - 0.000_5);
      if (index > 0)
        assert.ok(
          frameBefore && isSimilarColour(frameBefore.colour, colours[(index - 1) % 3] ?? []),
          `before ${atMs} ms`,
        );
    }
  }
});

test('waiting segments are encoded in one process, and each segment can be played alone', async () => {
  const folder = makeFolder();
  const [countingFfmpeg, runs] = [join(folder, 'ffmpeg'), join(folder, 'runs')];
  writeFileSync(countingFfmpeg, `#!/bin/sh\necho x >> ${runs}\nexec ffmpeg "$@"\n`, { mode: 0o755 });
  const colours = [RED, GREEN, BLUE];
  const images = colours.map(colour => makeJpeg(colour, LARGE_SIZE));
  // These times give two segments with several frames, three without changes, two with changes again, and a segment of
  // 0.1 s.
  const times = [0, 3_000, 5_999, 7_000, 30_500, 31_000, 36_100, 37_777];
  const shownFrames = times.map((atMs, index) => ({ atMs, jpeg: images[index % 3] ?? Buffer.alloc(0) }));
  // The path contains an apostrophe and spaces, which must be escaped in a shell command and in ffmpeg's list of input
  // files.
  const path = join(folder, "it's a page");
  const queueClock = new ManualClock();
  const queue = new EncodeQueue(new Ffmpeg(boundedHelper, countingFfmpeg), queueClock, silentLog);
  const pendingFilm = recordFilm(path, shownFrames, 42_100, queue);
  // The three segments without changes are encoded as one.
  await eventually('six segments to wait for their batch', () => queueClock.sleeperCount === 6);
  await queueClock.advance(1_000);
  const { segments, lost } = await pendingFilm;
  assert.deepEqual(lost, []);
  assert.deepEqual(
    segments.map(segment => [segment.startMs, millisecondsOf(segment)]),
    [...Array.from({ length: 7 }, (_, index) => [index * 6_000, 6_000]), [42_000, 100]],
  );
  assert.equal(readFileSync(runs, 'utf8').split('\n').length - 1, 1);
  const singleFilm = await recordFilm(join(folder, 'alone'), shownFrames.slice(0, 1), 1_000);
  for (const { init, bytes, startMs, durationsMs } of segments) {
    assert.ok(singleFilm.segments[0]?.init.equals(init), 'the init segment is that of a segment encoded alone');
    const frames = framesOf(Buffer.concat([init, bytes]));
    assert.equal(frames.length, durationsMs.length);
    let atMs = startMs;
    for (const [index, { colour }] of frames.entries()) {
      const expectedColour = colours[times.findLastIndex(ms => ms <= atMs) % 3] ?? [];
      assert.ok(isSimilarColour(colour, expectedColour), `${atMs} ms: ${colour}`);
      atMs += durationsMs[index] ?? 0;
    }
  }
});

test('segments are encoded one by one if they cannot be encoded together', async () => {
  const folder = makeFolder();
  const ffmpegWithoutConcat = join(folder, 'ffmpeg');
  writeFileSync(ffmpegWithoutConcat, '#!/bin/sh\ncase "$*" in *"-f concat"*) exit 1;; esac\nexec ffmpeg "$@"\n', {
    mode: 0o755,
  });
  const shownFrames = [RED, GREEN, BLUE].map((colour, index) => ({
    atMs: index * 6_500,
    jpeg: makeJpeg(colour, LARGE_SIZE),
  }));
  const queueClock = new ManualClock();
  const queue = new EncodeQueue(new Ffmpeg(boundedHelper, ffmpegWithoutConcat), queueClock, silentLog);
  const pendingFilm = recordFilm(join(folder, 'page'), shownFrames, 18_000, queue);
  await eventually('three segments to wait for their batch', () => queueClock.sleeperCount === 3);
  await queueClock.advance(1_000);
  const { segments, lost } = await pendingFilm;
  assert.deepEqual(
    segments.map(({ startMs, sizes }) => [startMs, sizes.length]),
    [
      [0, 1],
      [6_000, 2],
      [12_000, 2],
    ],
  );
  assert.deepEqual(lost, []);
});

test('a frame that exceeds the size limit is skipped, the gap is reported, and the recording continues with the next frame', async () => {
  const clock = new TestClock();
  const spans: Span[] = [];
  const storedSegments: Segment[] = [];
  const finishedPages: number[] = [];
  const sink = {
    began: async () => {},
    keep: async (_: RecordedPage, segment: Segment) => void storedSegments.push(segment),
    span: async (_: RecordedPage, span: Span) => void spans.push(span),
    endSpans: async () => {},
    done: async ({ page }: RecordedPage) => void finishedPages.push(page),
  };
  const smallJpeg = makeJpeg(RED, { width: 64, height: 48 });
  const folder = makeFolder();
  const recorder = await Recorder.open({ folder, sink, workers, clock, log: silentLog, confine: jailedHelper });
  after(() => recorder.close());
  const recording = await recorder.record({
    session: SESSION,
    maskKind: 'none',
    secrets: new SecretTexts(),
    reportShortfall: () => {},
  });
  const tab = new FakeTab('tab', smallJpeg, clock);
  recording.recordPage(tab, 0, { at: clock.now() });
  await eventually('the recording to begin', () => existsSync(join(folder, SESSION, '0')));
  tab.show(withClaimedSize(smallJpeg, { width: 8_000, height: 8_000 }));
  await eventually('the gap to be reported', () => spans.length > 0);
  clock.advance(1_000);
  tab.show(makeJpeg(GREEN, { width: 64, height: 48 }));
  await eventually('the end of the gap', () => spans.some(({ toMs }) => toMs !== undefined));
  clock.advance(1_000);
  await recorder.finish(SESSION);
  await eventually('the recording to be stored', () => finishedPages.length > 0);
  assert.deepEqual(
    [...new Set(spans.map(({ kind, why }) => `${kind}: ${why}`))],
    ['missing: the picture has more than 16777216 pixels'],
  );
  assert.deepEqual([...new Set(storedSegments.map(({ size }) => `${size.width}x${size.height}`))], ['64x48']);
});

test('a frame of the largest size that a page may have is encoded', async () => {
  const largestSize = { width: 4096, height: 4096 };
  const { segments, lost } = await recordFilm(
    join(makeFolder(), 'page'),
    [{ atMs: 0, jpeg: makeJpeg(BLUE, largestSize) }],
    100,
  );
  assert.deepEqual(lost, []);
  assert.deepEqual(segments[0]?.size, largestSize);
});

test('the HLS playlist and the segments are valid for a page whose size changes', async () => {
  const shownFrames = [
    { atMs: 0, jpeg: makeJpeg(RED, LARGE_SIZE) },
    { atMs: 2_500, jpeg: makeJpeg(GREEN, ODD_SIZE) },
    { atMs: 9_000, jpeg: makeJpeg(BLUE, LARGE_SIZE) },
  ];
  const { segments } = await recordFilm(join(makeFolder(), 'page'), shownFrames, 10_200);
  const inits = segments.map(({ init }) => init.toString('hex'));
  const runs = [...new Set(inits)];
  const rows = segments.map((segment, index): SegmentRow => {
    const { sequence, startMs, durationsMs, sizes, size, payloadAt, bytes } = segment;
    const run = runs.indexOf(inits[index] ?? '');
    return {
      ...{ sessionId: SESSION, page: 0, sequence, run, startMs, ...size, payloadAt, bytes: bytes.length },
      durationMs: millisecondsOf(segment),
      samples: { durationsMs, sizes },
    };
  });
  const urlOptions = { initUrl: (run: number) => `init-${run}`, segmentUrl: String };
  const options = { segmentMs: SEGMENT_MS, startedAt: new Date(0), ...urlOptions };
  const parsedPlaylist = HLS.parse(playlist({ ...options, segments: rows, isComplete: true }));
  assert.ok(!parsedPlaylist.isMasterPlaylist && parsedPlaylist.endlist && parsedPlaylist.playlistType === 'VOD');
  assert.deepEqual(
    parsedPlaylist.segments.map(({ duration, discontinuity, map }) => [duration, discontinuity ?? false, map?.uri]),
    [
      [2.5, false, 'init-0'],
      [6, true, 'init-1'],
      [0.5, false, 'init-1'],
      [1.2, true, 'init-0'],
    ],
  );
  for (const { duration } of parsedPlaylist.segments)
    assert.ok(Math.round(duration) <= (parsedPlaylist.targetDuration ?? 0));
  // Each playlist begins with the text of the playlist that has one segment fewer.
  for (let count = 1; count <= rows.length; count++) {
    const playlistOf = (segments: readonly SegmentRow[]) => playlist({ ...options, segments, isComplete: false });
    const longerPlaylist = playlistOf(rows.slice(0, count));
    assert.ok(longerPlaylist.startsWith(playlistOf(rows.slice(0, count - 1))));
    assert.ok(!('errors' in HLS.parse(longerPlaylist)));
  }
  const seen = segments.map(({ init, bytes }) => framesOf(Buffer.concat([init, bytes]))[0]?.colour ?? []);
  for (const [index, colour] of [RED, GREEN, GREEN, BLUE].entries())
    assert.ok(isSimilarColour(seen[index] ?? [], colour), JSON.stringify(seen));
});

test('if 64 tabs are already recorded, another tab is recorded once one of them ends, and the delay is reported', async () => {
  const clock = new TestClock();
  const spans: Array<Span & { readonly page: number }> = [];
  const storedSegments = new Map<number, Segment[]>();
  const begunPages = new Set<number>();
  const finishedPages: number[] = [];
  const sink = {
    began: async ({ page }: RecordedPage) => void begunPages.add(page),
    keep: async ({ page }: RecordedPage, segment: Segment) =>
      void storedSegments.set(page, [...(storedSegments.get(page) ?? []), segment]),
    span: async ({ page }: RecordedPage, span: Span) => void spans.push({ page, ...span }),
    endSpans: async () => {},
    done: async ({ page }: RecordedPage) => void finishedPages.push(page),
  };
  const recorder = await Recorder.open({
    ...{ folder: makeFolder(), sink, workers, clock, log: silentLog, confine: jailedHelper, encoders: 2 },
  });
  after(() => recorder.close());
  const shortfalls: Array<readonly unknown[]> = [];
  const noteShortfall = (...all: readonly unknown[]): void => void shortfalls.push(all);
  const recording = await recorder.record({
    session: SESSION,
    maskKind: 'none',
    secrets: new SecretTexts(),
    reportShortfall: noteShortfall,
  });
  const red = makeJpeg(RED, { width: 64, height: 48 });
  const tabs = Array.from({ length: PAGES_AT_ONCE_MAX + 2 }, (_, page) => new FakeTab(`tab-${page}`, red, clock));
  const beganMs = clock.monotonicMs();
  for (const [page, tab] of tabs.entries()) recording.recordPage(tab, page, { at: clock.now() });
  assert.deepEqual(shortfalls, [
    ['too_many_at_once', 'tab-64', 64],
    ['too_many_at_once', 'tab-65', 65],
  ]);
  assert.deepEqual(
    tabs.map(({ isShown }) => isShown),
    tabs.map((_, page) => page < PAGES_AT_ONCE_MAX),
  );
  await eventually('64 recordings', () => begunPages.size === PAGES_AT_ONCE_MAX, Boolean, 60_000);
  clock.advance(3_000);
  tabs[7]?.end();
  await eventually('the 65th tab to be recorded', () => begunPages.has(64));
  clock.advance(2_000);
  await recorder.finish(SESSION);
  const elapsedMs = clock.monotonicMs() - beganMs;
  await eventually('all to be stored', () => finishedPages.length === PAGES_AT_ONCE_MAX + 1, Boolean, 60_000);
  assert.ok(!finishedPages.includes(65));
  const lengths = [...storedSegments].map(([page, segments]) => [
    page,
    segments.reduce((sum, one) => sum + millisecondsOf(one), 0),
  ]);
  for (const [page = 0, ms = 0] of lengths) {
    assert.ok(ms >= (page === 7 ? 3_000 : 5_000) && ms <= elapsedMs, `page ${page}: ${ms} of ${elapsedMs}`);
  }
  const delaySpans = spans.filter(({ page, why }) => page === 64 && why === 'too_many_at_once');
  assert.ok(delaySpans.length === 1 && (delaySpans[0]?.toMs ?? 0) >= 3_000, JSON.stringify(delaySpans));
});

test('segments are encoded in batches while nobody is watching, and as soon as they complete while somebody is watching', async () => {
  const clock = new TestClock();
  const storedSequences: number[] = [];
  const sink = {
    began: async () => {},
    keep: async (_: RecordedPage, { sequence }: Segment) => void storedSequences.push(sequence),
    span: async () => {},
    endSpans: async () => {},
    done: async () => {},
  };
  const folder = makeFolder();
  const recorder = await Recorder.open({ folder, sink, workers, clock, log: silentLog, confine: jailedHelper });
  after(() => recorder.close());
  const recording = await recorder.record({
    session: SESSION,
    maskKind: 'none',
    secrets: new SecretTexts(),
    reportShortfall: () => {},
  });
  recording.recordPage(new FakeTab('tab', makeJpeg(RED, { width: 64, height: 48 }), clock), 0, { at: clock.now() });
  // The test clock also advances in real time, so a slow machine may produce more than `count` segments.
  const hasSegments = (count: number) => () =>
    readdirSync(join(folder, SESSION, '0')).filter(name => /^\d+\.\d+\.\d+\.mkv$/.test(name)).length >= count;
  const advanceToSegments = async (count: number): Promise<void> => {
    clock.advance(6_000);
    await eventually(`${count} segments`, hasSegments(count));
  };
  await eventually('the recording to begin', () => existsSync(join(folder, SESSION, '0')));
  for (const count of [1, 2, 3]) await advanceToSegments(count);
  assert.deepEqual(storedSequences, []);
  await recorder.markWatched(SESSION);
  const countBefore = storedSequences.length;
  assert.ok(countBefore >= 3);
  clock.advance(6_000);
  await eventually('the next segment', () => storedSequences.length > countBefore);
  // If the recording has not been watched for a minute, at most five segments are held back before they are encoded.
  clock.advance(61_000);
  await eventually('the segments of that minute', () => storedSequences.length >= countBefore + 6);
  assert.deepEqual(
    storedSequences,
    storedSequences.map((_, index) => index + 1),
  );
});

/** Returns the same bytes with another size in the frame header. */
function withClaimedSize(jpeg: Buffer, { width, height }: Size): Buffer {
  const alteredJpeg = Buffer.from(jpeg);
  const at = alteredJpeg.indexOf(Buffer.from([0xff, 0xc0]));
  alteredJpeg.writeUInt16BE(height, at + 5);
  alteredJpeg.writeUInt16BE(width, at + 7);
  return alteredJpeg;
}

/** A tab that sends a screencast frame when a screencast starts, and at each call of `show`. */
class FakeTab implements TargetChannel {
  readonly id: string;
  readonly kind = 'page';
  readonly url = 'https://page.test/';
  readonly parent = undefined;
  isGone = false;
  isShown = false;
  #shownFrame: Buffer;
  /** The number of the current screencast. Frames of an earlier one are ignored. */
  #run = 0;
  readonly #clock: TestClock;
  readonly #listeners: Array<Parameters<TargetChannel['on']>[0]> = [];
  readonly #goneListeners: Array<() => void> = [];

  constructor(id: string, jpeg: Buffer, clock: TestClock) {
    this.id = id;
    this.#shownFrame = jpeg;
    this.#clock = clock;
  }

  async send(method: string): Promise<JsonObject> {
    if (method === 'Page.startScreencast') {
      this.#run++;
      this.#show();
    }
    return {};
  }

  post(): void {}

  show(jpeg: Buffer): void {
    this.#shownFrame = jpeg;
    this.#show();
  }

  #show(): void {
    this.isShown = true;
    const nowMs = this.#clock.now().getTime();
    const metadata = { timestamp: nowMs / 1_000, monotonicTimestamp: this.#clock.monotonicMs() / 1_000 };
    const params = { data: this.#shownFrame.toString('base64'), sessionId: this.#run, metadata };
    setImmediate(() => {
      for (const listener of this.#listeners) listener('Page.screencastFrame', params);
    });
  }

  on(listener: Parameters<TargetChannel['on']>[0]) {
    this.#listeners.push(listener);
    return { close: () => {} };
  }

  whenGone(listener: () => void): void {
    this.#goneListeners.push(listener);
  }

  end(): void {
    this.isGone = true;
    for (const listener of this.#goneListeners) listener();
  }
}

test('on a full disk, the gap in the recording is reported, and the frames before and after the gap are kept', async () => {
  const path = mkdtempSync(join(tmpdir(), 'berth-film-'));
  after(() => {
    spawnSync('umount', [path]);
    rmSync(path, { recursive: true });
  });
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=400k,mode=755', 'berth-test', path]);
  assert.equal(status, 0, 'mount');
  const ballast = join(path, 'ballast');
  const [red, blue] = [makeJpeg(RED, LARGE_SIZE), makeJpeg(BLUE, LARGE_SIZE)];
  mkdirSync(join(path, 'page'));
  const shownFrames = [
    { atMs: 0, jpeg: red },
    { atMs: 1_000, jpeg: blue },
    {
      atMs: 2_000,
      jpeg: red,
      prepare: () => assert.throws(() => writeFileSync(ballast, Buffer.alloc(1024 ** 2)), /ENOSPC/),
    },
    { atMs: 5_000, jpeg: blue, prepare: () => rmSync(ballast) },
    { atMs: 7_000, jpeg: red },
  ];
  const { segments, lost } = await recordFilm(join(path, 'page'), shownFrames, 8_000);
  assert.equal(
    segments.reduce((sum, segment) => sum + millisecondsOf(segment), 0),
    8_000,
  );
  const [gap] = lost.slice(-1);
  assert.ok(gap && gap[0] >= 1_000 && gap[1] >= 5_000, JSON.stringify(lost));
  const [first] = segments;
  const film = Buffer.concat([first?.init ?? Buffer.alloc(0), ...segments.map(({ bytes }) => bytes)]);
  assert.equal(timesOf(film).length, framesOf(film).length);
  const colours = framesOf(film).map(({ colour }) =>
    isSimilarColour(colour, RED) ? 'red' : isSimilarColour(colour, BLUE) ? 'blue' : '',
  );
  assert.deepEqual([colours[0], colours[1], colours.at(-1)], ['red', 'blue', 'red']);
});
