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
const GOING = 40;
const STEP_MS = 1_900;
/** How late a frame may be on a busy machine. */
const LATE_MS = 900;
/** The number of frames after which a change is visible in the browser. */
const SHOWN_AFTER_FRAMES = 4;
const MOVING_PAGE =
  '<!doctype html><p>0</p><script>let n = 0; setInterval(() => { document.querySelector("p").textContent = ++n; }, 20)</script>';

class MemorySink implements RecordingSink {
  readonly segments = new Map<number, Segment[]>();
  readonly finished: number[] = [];
  readonly spans: Array<Span & { readonly page: number }> = [];
  /** Spans that were reported before they had ended. */
  readonly going: Array<Span & { readonly page: number }> = [];
  isUnavailable = false;
  readonly begun = new Set<number>();
  async began({ page }: RecordedPage): Promise<void> {
    this.begun.add(page);
  }
  async keep({ page }: { page: number }, segment: Segment): Promise<void> {
    if (this.isUnavailable) throw new Error('the store is away');
    this.segments.set(page, [...(this.segments.get(page) ?? []), segment]);
  }
  async span({ page }: RecordedPage, { kind, fromMs, toMs, why }: Span): Promise<void> {
    if (toMs === undefined) this.going.push({ page, kind, fromMs });
    else this.spans.push({ page, kind, fromMs, toMs, ...(why ? { why } : {}) });
  }
  async endSpans(): Promise<void> {}
  async done({ page }: { page: number }): Promise<void> {
    this.finished.push(page);
  }
}

async function open(parts: Omit<RecorderOptions, 'confine' | 'workers'>): Promise<Recorder> {
  const recorder = await Recorder.open({ ...parts, workers, confine: jailedHelper });
  after(() => recorder.close());
  return recorder;
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-recorder-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The color in the middle of each frame, with its time. */
function shown(segments: readonly Segment[]): { atMs: number; colour: number[] }[] {
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
  const starts = segments.flatMap(({ startMs, durationsMs }) => {
    const before = (index: number): number => durationsMs.slice(0, index).reduce((sum, ms) => sum + ms, 0);
    return durationsMs.map((_, index) => startMs + before(index));
  });
  return starts.map((atMs, index) => ({ atMs, colour: [...stdout.subarray(index * 12, index * 12 + 3)] }));
}

const isNear = (a: readonly number[], b: readonly number[]): boolean =>
  a.every((value, index) => Math.abs(value - (b[index] ?? 0)) < 12);

async function record(recorder: Recorder, session: string, agoMs = 0) {
  const short: string[] = [];
  const recording = await recorder.record({
    session,
    maskKind: 'none',
    secrets: new SecretTexts(),
    reportShortfall: why => short.push(why),
  });
  const present = new Set<string>();
  const observing = await bare.browser.observe({
    target: (target: ObservedTarget) => {
      // A second tab is not recorded: all pages are page 0 here.
      if (target.kind !== 'page' || present.size > 0) return;
      present.add(target.id);
      recording.recordPage(target, 0, { at: new Date(systemClock.now().getTime() - agoMs) });
    },
  });
  await recording.settle(present);
  return { recording, observing, short };
}

test('each colour of a page is recorded at the time at which it was painted, until the recording ends', async () => {
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
  // Each color was painted between these two times, even if the machine was slow.
  const painted: Array<{ readonly fromMs: number; readonly toMs: number }> = [];
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
    painted.push({ fromMs, toMs: performance.now() });
    await new Promise(resolve => setTimeout(resolve, STEP_MS));
  }
  await observing.close();
  await recorder.finish('colours');
  const lastedMs = performance.now() - beganMs;
  await eventually('the recording to be stored', () => sink.finished.includes(0));
  const segments = sink.segments.get(0) ?? [];
  assert.ok(segments.length >= 2);
  const frames = shown(segments);
  const total = segments.flatMap(({ durationsMs }) => durationsMs).reduce((sum, ms) => sum + ms, 0);
  assert.ok(total > colours.length * STEP_MS - LATE_MS && total < lastedMs + LATE_MS, `${total} of ${lastedMs}`);
  const [, firstOf] = painted;
  for (const [index, colour] of colours.entries()) {
    const frame = frames.find(one => isNear(one.colour, colour));
    assert.ok(frame, `${colour} in ${JSON.stringify(frames)}`);
    if (index === 0 || firstOf === undefined) continue;
    const second = frames.find(one => isNear(one.colour, colours[1]));
    const { fromMs = 0, toMs = 0 } = painted[index] ?? {};
    const [min, max] = [fromMs - firstOf.toMs, toMs - firstOf.fromMs];
    const later = frame.atMs - (second?.atMs ?? 0);
    assert.ok(later > min - LATE_MS && later < max + LATE_MS, `${colour}: ${later}, not ${min} to ${max}`);
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
  await eventually('all to be stored', () => sink.finished.includes(0));
  const segments = sink.segments.get(0) ?? [];
  assert.deepEqual(
    segments[0]?.durationsMs.reduce((sum, ms) => sum + ms, 0),
    6_000,
  );
  assert.deepEqual(segments.at(-1)?.size, { width: 802, height: 602 });
  for (const [index, segment] of segments.entries()) {
    const before = segments[index - 1];
    if (before) assert.equal(segment.startMs, before.startMs + before.durationsMs.reduce((sum, ms) => sum + ms, 0));
  }
  await eventually('the files of the recording to be removed', () => readdirSync(folder).join() === 'alive');
  await client.close();
  await recorder.close();
});

test('the recording of a killed process is stored, up to the last time at which the process was known to be alive', async () => {
  const sink = new MemorySink();
  const folder = makeFolder();
  const killed = await open({ folder, sink, clock: systemClock, log: silentLog });
  const beganMs = performance.now();
  const { observing } = await record(killed, 'killed');
  await eventually('the journal to exist', () => readdirSync(join(folder)).includes('killed'));
  const stoodMs = Date.now();
  const aliveFile = join(folder, 'alive');
  const aliveMs = (): number => (existsSync(aliveFile) ? Number(readFileSync(aliveFile, 'utf8')) : 0);
  await eventually('the recorder to note that it is alive', aliveMs, ms => ms > stoodMs + 1_000);
  await observing.close();
  await killed.close(); // leaves the files unchanged
  const lastedMs = performance.now() - beganMs;
  assert.deepEqual(sink.finished, []);
  const successor = await open({ folder, sink, clock: systemClock, log: silentLog });
  assert.deepEqual(await successor.leftovers(), ['killed']);
  // A recording may be finished twice at the same time: by the end of the session and by the search for leftover files.
  await Promise.all([successor.finish('killed'), successor.finish('killed')]);
  await successor.finish('killed');
  await eventually('all to be stored', () => sink.finished.includes(0));
  assert.deepEqual(sink.finished, [0]);
  const total = (sink.segments.get(0) ?? []).flatMap(({ durationsMs }) => durationsMs).reduce((sum, ms) => sum + ms, 0);
  assert.ok(total > 700 && total < lastedMs + LATE_MS, `${total} of ${lastedMs}`);
  await successor.close();
});

test('a recording starts at the time its page appeared, holds the first frame over the missed time, and reports the gap', async () => {
  const sink = new MemorySink();
  const recorder = await open({ folder: makeFolder(), sink, clock: systemClock, log: silentLog });
  const { observing } = await record(recorder, 'late', 7_000);
  await recorder.markWatched('late');
  await eventually('the first segment', () => (sink.segments.get(0)?.length ?? 0) > 0);
  await observing.close();
  await recorder.finish('late');
  await eventually('all to be stored', () => sink.finished.includes(0));
  const segments = sink.segments.get(0) ?? [];
  const lengths = segments.map(({ durationsMs }) => durationsMs.reduce((sum, ms) => sum + ms, 0));
  assert.deepEqual([segments[0]?.startMs, lengths[0], segments[1]?.startMs], [0, 6_000, 6_000]);
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
  const noise =
    "document.body.innerHTML = '<canvas width=800 height=500>'; const g = document.querySelector('canvas').getContext('2d');";
  const draw =
    'for (let n = 0; n < 400; n++) { g.fillStyle = `hsl(${Math.random() * 360} 90% 50%)`; g.fillRect(Math.random() * 800, Math.random() * 500, 20, 20); }';
  await client.evaluate(`${noise} globalThis.drawing = setInterval(() => { ${draw} }, 100)`, page);
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
  await eventually('all to be stored', () => sink.finished.includes(0));
  const segments = sink.segments.get(0) ?? [];
  const gap = sink.spans.find(({ why }) => why === 'backlog');
  // The number of segments before the gap depends on the speed of the machine.
  const last = segments.findLast(({ startMs }) => gap && startMs < gap.fromMs);
  const later = segments.slice(last ? segments.indexOf(last) + 1 : 0);
  const endMs = (last?.startMs ?? 0) + (last?.durationsMs.reduce((sum, ms) => sum + ms, 0) ?? 0);
  assert.ok(gap && Math.abs(endMs - gap.fromMs) < 300, `${endMs} ${JSON.stringify(gap)}`);
  assert.ok(later.every(({ startMs }) => startMs >= endMs));
  assert.ok(
    isNear(shown(later).at(-1)?.colour ?? [], [0, 0, 255]),
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
  await eventually('a picture', () => sink.begun.has(0));
  // Alternates between two sites, so that each navigation uses a new process. A screencast that begins while the
  // process changes is refused.
  for (let n = 0; n < GOING; n++) {
    const url = n % 2 ? pages.url : pages.url.replace('127.0.0.1', 'localhost');
    await client.send('Page.navigate', { url: `${url}/moving` }, page);
  }
  await client.send('Page.navigate', { url: `${pages.url}/blue` }, page);
  await eventually('the final page to be loaded', () =>
    client.evaluate("location.pathname === '/blue' && Number(document.querySelector('p')?.textContent) > 5", page),
  );
  const later = Date.now() + 500;
  await eventually('a frame of the final page', () => (recording.hubOf(0)?.newestFrame?.at.getTime() ?? 0) > later);
  await observing.close();
  await recorder.finish('going');
  await eventually('the recording to be stored', () => sink.finished.includes(0));
  const last = shown(sink.segments.get(0) ?? []).at(-1);
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
  await eventually('a picture', () => sink.begun.has(0));
  const { targetId } = await client.send('Target.createTarget', { url: 'about:blank', newWindow: false });
  await eventually('the page to be reported as hidden', () => sink.going.some(({ kind }) => kind === 'hidden'));
  await client.send('Target.activateTarget', { targetId: frontTargetId });
  await eventually('the end of the hidden span', () => sink.spans.some(({ kind }) => kind === 'hidden'));
  const [told, ended] = [sink.going, sink.spans].map(spans => spans.find(({ kind }) => kind === 'hidden'));
  assert.ok(told && ended);
  assert.equal(told.fromMs, ended.fromMs);
  await client.send('Target.closeTarget', { targetId });
  await observing.close();
  await recorder.finish('behind');
  await eventually('all to be stored', () => sink.finished.includes(0));
  await client.close();
  await recorder.close();
});
