// The recorder with a real Chromium and a real ffmpeg: it stores what was visible, with the correct times.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { ObservedTarget } from '../../server/engines/browser/observation.ts';
import type { RecordedPage, RecordingSink, Span } from '../../server/engines/recorder/page-recording.ts';
import type { Segment } from '../../server/engines/recorder/pipeline.ts';
import { Recorder, type RecorderOptions } from '../../server/engines/recorder/recorder.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { silentLog } from '../../server/kit/log.ts';
import { SecretTexts } from '../../server/kit/secret-texts.ts';
import { WorkerPool } from '../../server/kit/worker-pool.ts';
import { startBareBrowser } from '../harness/bare-browser.ts';
import { CdpClient } from '../harness/cdp.ts';
import { jailedHelper } from '../harness/helpers.ts';
import { openPages } from '../harness/pages.ts';
import { eventually } from '../harness/until.ts';

const bare = await startBareBrowser();
after(() => bare.close());
const workers = new WorkerPool();
after(() => workers.close());

/** The width of the page before the test changes the size of the page. */
const LARGE_WIDTH = 1_280;
const NAVIGATION_COUNT = 40;
const STEP_MS = 1_900;
/** How late a frame may be on a busy machine. */
const DELAY_MAX_MS = 900;
/** The number of frames after which a change is visible in the browser. */
const SHOWN_AFTER_FRAMES = 4;
const MOVING_PAGE =
  '<!doctype html><p>0</p><script>let n = 0; setInterval(() => { document.querySelector("p").textContent = ++n; }, 20)</script>';

class MemorySink implements RecordingSink {
  readonly segments = new Map<number, Segment[]>();
  readonly finishedPages: number[] = [];
  readonly spans: Array<Span & { readonly page: number }> = [];
  /** Spans that were reported before they had ended. */
  readonly openSpans: Array<Span & { readonly page: number }> = [];
  isUnavailable = false;
  readonly begunPages = new Set<number>();
  async began({ page }: RecordedPage): Promise<void> {
    this.begunPages.add(page);
  }
  async keep({ page }: { page: number }, segment: Segment): Promise<void> {
    if (this.isUnavailable) throw new Error('the store is away');
    this.segments.set(page, [...(this.segments.get(page) ?? []), segment]);
  }
  async span({ page }: RecordedPage, { kind, fromMs, toMs, why }: Span): Promise<void> {
    if (toMs === undefined) this.openSpans.push({ page, kind, fromMs });
    else this.spans.push({ page, kind, fromMs, toMs, ...(why ? { why } : {}) });
  }
  async endSpans(): Promise<void> {}
  async done({ page }: { page: number }): Promise<void> {
    this.finishedPages.push(page);
  }
}

async function open(options: Omit<RecorderOptions, 'confine' | 'workers'>): Promise<Recorder> {
  const recorder = await Recorder.open({ ...options, workers, confine: jailedHelper });
  after(() => recorder.close());
  return recorder;
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-recorder-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Returns the time of each frame and the color at its center. */
function decodeFrames(segments: readonly Segment[]): { atMs: number; colour: number[] }[] {
  const [first] = segments;
  if (!first) return [];
  const film = Buffer.concat([first.init, ...segments.map(({ bytes }) => bytes)]);
  const { stdout, stderr, status } = spawnSync(
    'ffmpeg',
    [
      '-v',
      'error',
      '-i',
      'pipe:0',
      '-vf',
      'crop=2:2:iw/2:ih/2',
      '-fps_mode',
      'passthrough',
      '-enc_time_base',
      '1:1000',
      '-pix_fmt',
      'rgb24',
      '-f',
      'rawvideo',
      'pipe:1',
    ],
    { input: film, maxBuffer: 64 * 1024 ** 2 },
  );
  assert.equal(status, 0, String(stderr));
  assert.equal(String(stderr), '');
  const frameTimes = segments.flatMap(({ startMs, durationsMs }) => {
    const durationBefore = (index: number): number => durationsMs.slice(0, index).reduce((sum, ms) => sum + ms, 0);
    return durationsMs.map((_, index) => startMs + durationBefore(index));
  });
  return frameTimes.map((atMs, index) => ({ atMs, colour: [...stdout.subarray(index * 12, index * 12 + 3)] }));
}

const isNear = (a: readonly number[], b: readonly number[]): boolean =>
  a.every((value, index) => Math.abs(value - (b[index] ?? 0)) < 12);

async function record(recorder: Recorder, session: string, agoMs = 0) {
  const shortfalls: string[] = [];
  const recording = await recorder.record({
    session,
    maskKind: 'none',
    secrets: new SecretTexts(),
    reportShortfall: why => shortfalls.push(why),
  });
  const presentIds = new Set<string>();
  const observation = await bare.browser.observe({
    target: (target: ObservedTarget) => {
      // Only the first tab is recorded, because this helper records every page as page 0.
      if (target.kind !== 'page' || presentIds.size > 0) return;
      presentIds.add(target.id);
      recording.recordPage(target, 0, { at: new Date(systemClock.now().getTime() - agoMs) });
    },
  });
  await recording.settle(presentIds);
  return { recording, observing: observation, short: shortfalls };
}

test('each color of a page is recorded at the time at which it was painted, and the recording has the full duration', async () => {
  const sink = new MemorySink();
  const recorder = await open({ folder: makeFolder(), sink, clock: systemClock, log: silentLog });
  const client = await CdpClient.connect(bare.url);
  const page = await client.attachToPage();
  const colours = [
    [255, 0, 0],
    [0, 255, 0],
    [0, 0, 255],
    [255, 255, 0],
  ] as const;
  await client.evaluate("document.documentElement.style.background = 'rgb(9,9,9)'", page);
  const beganMs = performance.now();
  const { observing } = await record(recorder, 'colours');
  // Each color is painted between `fromMs` and `toMs`, even if the machine is slow.
  const paintTimes: Array<{ readonly fromMs: number; readonly toMs: number }> = [];
  for (const colour of colours) {
    const fromMs = performance.now();
    await client.evaluate(
      `new Promise(done => {
        document.documentElement.style.background = 'rgb(${colour.join()})';
        let frames = ${SHOWN_AFTER_FRAMES};
        const next = () => (frames-- > 0 ? requestAnimationFrame(next) : done());
        next();
      })`,
      page,
    );
    paintTimes.push({ fromMs, toMs: performance.now() });
    await new Promise(resolve => setTimeout(resolve, STEP_MS));
  }
  await observing.close();
  await recorder.finish('colours');
  const elapsedMs = performance.now() - beganMs;
  await eventually('the recording to be stored', () => sink.finishedPages.includes(0));
  const segments = sink.segments.get(0) ?? [];
  assert.ok(segments.length >= 2);
  const frames = decodeFrames(segments);
  const totalMs = segments.flatMap(({ durationsMs }) => durationsMs).reduce((sum, ms) => sum + ms, 0);
  assert.ok(
    totalMs > colours.length * STEP_MS - DELAY_MAX_MS && totalMs < elapsedMs + DELAY_MAX_MS,
    `${totalMs} of ${elapsedMs}`,
  );
  const [, referencePaint] = paintTimes;
  for (const [index, colour] of colours.entries()) {
    const frame = frames.find(one => isNear(one.colour, colour));
    assert.ok(frame, `${colour} in ${JSON.stringify(frames)}`);
    if (index === 0 || referencePaint === undefined) continue;
    const referenceFrame = frames.find(one => isNear(one.colour, colours[1]));
    const { fromMs = 0, toMs = 0 } = paintTimes[index] ?? {};
    const [min, max] = [fromMs - referencePaint.toMs, toMs - referencePaint.fromMs];
    const delayMs = frame.atMs - (referenceFrame?.atMs ?? 0);
    assert.ok(
      delayMs > min - DELAY_MAX_MS && delayMs < max + DELAY_MAX_MS,
      `${colour}: ${delayMs}, not ${min} to ${max}`,
    );
  }
  await client.close();
  await recorder.close();
});

test('segments of an unchanged page are completed, and a new segment starts when the size of the page changes', async () => {
  const sink = new MemorySink();
  const folder = makeFolder();
  const recorder = await open({ folder, sink, clock: systemClock, log: silentLog });
  const client = await CdpClient.connect(bare.url);
  const page = await client.attachToPage();
  const { recording, observing } = await record(recorder, 'rest');
  await recorder.markWatched('rest');
  await eventually('the first segment to be completed', () => (sink.segments.get(0)?.length ?? 0) >= 1);
  const size = { width: 801, height: 601, deviceScaleFactor: 1, mobile: false };
  await client.send('Emulation.setDeviceMetricsOverride', size, page);
  // A second segment alone does not prove that the size has changed, because another segment with the old size may end
  // first.
  await eventually(
    'the new size to begin',
    () => (recording.hubOf(0)?.newestFrame?.width ?? LARGE_WIDTH) < LARGE_WIDTH,
  );
  await observing.close();
  await recorder.finish('rest');
  await eventually('all to be stored', () => sink.finishedPages.includes(0));
  const segments = sink.segments.get(0) ?? [];
  assert.deepEqual(
    segments[0]?.durationsMs.reduce((sum, ms) => sum + ms, 0),
    6_000,
  );
  assert.deepEqual(segments.at(-1)?.size, { width: 802, height: 602 });
  for (const [index, segment] of segments.entries()) {
    const previousSegment = segments[index - 1];
    if (previousSegment)
      assert.equal(
        segment.startMs,
        previousSegment.startMs + previousSegment.durationsMs.reduce((sum, ms) => sum + ms, 0),
      );
  }
  await eventually('the files of the recording to be removed', () => readdirSync(folder).join() === 'alive');
  await client.close();
  await recorder.close();
});

test('after a recorder is killed, the next recorder stores the recording up to the time the killed one was last known to be alive', async () => {
  const sink = new MemorySink();
  const folder = makeFolder();
  const killedRecorder = await open({ folder, sink, clock: systemClock, log: silentLog });
  const beganMs = performance.now();
  const { observing } = await record(killedRecorder, 'killed');
  await eventually('the journal to exist', () => readdirSync(join(folder)).includes('killed'));
  const journalSeenMs = Date.now();
  const aliveFile = join(folder, 'alive');
  const aliveMs = (): number => (existsSync(aliveFile) ? Number(readFileSync(aliveFile, 'utf8')) : 0);
  await eventually('the recorder to note that it is alive', aliveMs, ms => ms > journalSeenMs + 1_000);
  await observing.close();
  await killedRecorder.close(); // leaves the files unchanged
  const elapsedMs = performance.now() - beganMs;
  assert.deepEqual(sink.finishedPages, []);
  const successor = await open({ folder, sink, clock: systemClock, log: silentLog });
  assert.deepEqual(await successor.listLeftovers(), ['killed']);
  // A recording may be finished twice at the same time: by the end of the session and by the search for leftover files.
  await Promise.all([successor.finish('killed'), successor.finish('killed')]);
  await successor.finish('killed');
  await eventually('all to be stored', () => sink.finishedPages.includes(0));
  assert.deepEqual(sink.finishedPages, [0]);
  const totalMs = (sink.segments.get(0) ?? [])
    .flatMap(({ durationsMs }) => durationsMs)
    .reduce((sum, ms) => sum + ms, 0);
  assert.ok(totalMs > 700 && totalMs < elapsedMs + DELAY_MAX_MS, `${totalMs} of ${elapsedMs}`);
  await successor.close();
});

test('a recording that begins late starts when its page appeared, shows the first frame for the missed time, and reports the gap', async () => {
  const sink = new MemorySink();
  const recorder = await open({ folder: makeFolder(), sink, clock: systemClock, log: silentLog });
  const { observing } = await record(recorder, 'late', 7_000);
  await recorder.markWatched('late');
  await eventually('the first segment', () => (sink.segments.get(0)?.length ?? 0) > 0);
  await observing.close();
  await recorder.finish('late');
  await eventually('all to be stored', () => sink.finishedPages.includes(0));
  const segments = sink.segments.get(0) ?? [];
  const lengthsMs = segments.map(({ durationsMs }) => durationsMs.reduce((sum, ms) => sum + ms, 0));
  assert.deepEqual([segments[0]?.startMs, lengthsMs[0], segments[1]?.startMs], [0, 6_000, 6_000]);
  const [span, ...more] = sink.spans;
  assert.deepEqual([span?.kind, span?.fromMs, more], ['missing', 0, []]);
  assert.ok((span?.toMs ?? 0) >= 7_000, JSON.stringify(span));
  await recorder.close();
});

test('a recording pauses while the storage backlog is too large, reports the pause, and continues afterwards', async () => {
  const sink = new MemorySink();
  sink.isUnavailable = true;
  const backlog = { sessionBytes: 60_000 };
  const recorder = await open({ folder: makeFolder(), sink, clock: systemClock, log: silentLog, backlog });
  const client = await CdpClient.connect(bare.url);
  const page = await client.attachToPage();
  const { observing, short } = await record(recorder, 'much');
  const canvasScript =
    "document.body.innerHTML = '<canvas width=800 height=500>'; const g = document.querySelector('canvas').getContext('2d');";
  const draw =
    'for (let n = 0; n < 400; n++) { g.fillStyle = `hsl(${Math.random() * 360} 90% 50%)`; g.fillRect(Math.random() * 800, Math.random() * 500, 20, 20); }';
  await client.evaluate(`${canvasScript} globalThis.drawing = setInterval(() => { ${draw} }, 100)`, page);
  await eventually('the recording to pause', () => short.includes('backlog'));
  assert.deepEqual(sink.segments.size, 0);
  await client.evaluate(
    "clearInterval(drawing); document.body.innerHTML = ''; document.documentElement.style.background = 'rgb(0,0,255)'",
    page,
  );
  sink.isUnavailable = false;
  // A store that was down is tried again after at most 10 s.
  await eventually('the gap to end', () => sink.spans.find(({ why }) => why === 'backlog'), Boolean, 60_000);
  await observing.close();
  await recorder.finish('much');
  await eventually('all to be stored', () => sink.finishedPages.includes(0));
  const segments = sink.segments.get(0) ?? [];
  const gap = sink.spans.find(({ why }) => why === 'backlog');
  // The number of segments before the gap depends on the speed of the machine.
  const last = segments.findLast(({ startMs }) => gap && startMs < gap.fromMs);
  const laterSegments = segments.slice(last ? segments.indexOf(last) + 1 : 0);
  const endMs = (last?.startMs ?? 0) + (last?.durationsMs.reduce((sum, ms) => sum + ms, 0) ?? 0);
  assert.ok(gap && Math.abs(endMs - gap.fromMs) < 300, `${endMs} ${JSON.stringify(gap)}`);
  assert.ok(laterSegments.every(({ startMs }) => startMs >= endMs));
  assert.ok(
    isNear(decodeFrames(laterSegments).at(-1)?.colour ?? [], [0, 0, 255]),
    'the current state of the unchanged page is recorded',
  );
  await client.close();
  await recorder.close();
});

test('the final page after a series of navigations between sites is recorded', async () => {
  const sink = new MemorySink();
  const recorder = await open({ folder: makeFolder(), sink, clock: systemClock, log: silentLog });
  const pages = await openPages({
    '/moving': MOVING_PAGE,
    '/blue': `${MOVING_PAGE}<style>html{background:rgb(0,0,255)}</style>`,
  });
  const client = await CdpClient.connect(bare.url);
  const page = await client.attachToPage();
  const { recording, observing } = await record(recorder, 'going');
  await eventually('a picture', () => sink.begunPages.has(0));
  // Alternates between two sites, so that each navigation uses a new process. A screencast that begins while the
  // process changes is refused.
  for (let n = 0; n < NAVIGATION_COUNT; n++) {
    const url = n % 2 ? pages.url : pages.url.replace('127.0.0.1', 'localhost');
    await client.send('Page.navigate', { url: `${url}/moving` }, page);
  }
  await client.send('Page.navigate', { url: `${pages.url}/blue` }, page);
  await eventually('the final page to be loaded', () =>
    client.evaluate("location.pathname === '/blue' && Number(document.querySelector('p')?.textContent) > 5", page),
  );
  const loadedMs = Date.now() + 500;
  await eventually('a frame of the final page', () => (recording.hubOf(0)?.newestFrame?.at.getTime() ?? 0) > loadedMs);
  await observing.close();
  await recorder.finish('going');
  await eventually('the recording to be stored', () => sink.finishedPages.includes(0));
  const last = decodeFrames(sink.segments.get(0) ?? []).at(-1);
  assert.ok(isNear(last?.colour ?? [], [0, 0, 255]), JSON.stringify(last));
  await client.close();
  await recorder.close();
});

test('the last frame is held while another tab is in front, and the hidden span is reported', async () => {
  const sink = new MemorySink();
  const recorder = await open({ folder: makeFolder(), sink, clock: systemClock, log: silentLog });
  const client = await CdpClient.connect(bare.url);
  const { targetInfos } = await client.send('Target.getTargets');
  const frontTargetId = (targetInfos as { type: string; targetId: string }[]).find(
    ({ type }) => type === 'page',
  )?.targetId;
  const { observing } = await record(recorder, 'behind');
  await eventually('a picture', () => sink.begunPages.has(0));
  const { targetId } = await client.send('Target.createTarget', { url: 'about:blank', newWindow: false });
  await eventually('the page to be reported as hidden', () => sink.openSpans.some(({ kind }) => kind === 'hidden'));
  await client.send('Target.activateTarget', { targetId: frontTargetId });
  await eventually('the end of the hidden span', () => sink.spans.some(({ kind }) => kind === 'hidden'));
  const [told, ended] = [sink.openSpans, sink.spans].map(spans => spans.find(({ kind }) => kind === 'hidden'));
  assert.ok(told && ended);
  assert.equal(told.fromMs, ended.fromMs);
  await client.send('Target.closeTarget', { targetId });
  await observing.close();
  await recorder.finish('behind');
  await eventually('all to be stored', () => sink.finishedPages.includes(0));
  await client.close();
  await recorder.close();
});
