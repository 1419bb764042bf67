import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { eventually } from '../../../tests/harness/until.ts';
import type { JsonObject } from '../../kit/json.ts';
import { silentLog } from '../../kit/log.ts';
import type { BlackoutInput } from './blackout-job.ts';
import type { TargetChannel } from './channel.ts';
import { PAGES_AT_ONCE_MAX, Recorder, type RecorderOptions } from './recorder.ts';

const folder = await mkdtemp(join(tmpdir(), 'berth-recorder-'));
after(() => rm(folder, { recursive: true }));

test('finishing a session does not wait for pages whose page.json was missing or empty when the server was killed', async () => {
  await mkdir(join(folder, 'killed/0'), { recursive: true });
  await mkdir(join(folder, 'killed/1'));
  await writeFile(join(folder, 'killed/1/page.json'), '');
  await mkdir(join(folder, 'unreadable/0/page.json'), { recursive: true });
  const sink = {} as unknown as RecorderOptions['sink'];
  const workers = {} as unknown as RecorderOptions['workers'];
  const confine = {} as unknown as RecorderOptions['confine'];
  const recorder = await Recorder.open({ folder, sink, workers, confine, clock: new ManualClock(), log: silentLog });
  for (const session of await recorder.listLeftovers()) await recorder.finish(session);
  assert.equal(await recorder.whenSettled('killed'), true);
  assert.deepEqual(await readdir(folder), ['unreadable'], 'a folder that cannot be read now is kept');
  await recorder.close();
});

test('keeps trying to store an unreadable page that an earlier server recorded, and stores the other pages', async () => {
  const data = join(folder, 'left');
  const unreadablePath = join(data, 'session/0/1.0.6000.mkv');
  // A folder cannot be read as a file, not even by root.
  await mkdir(unreadablePath, { recursive: true });
  await mkdir(join(data, 'session/1'));
  const note = JSON.stringify({ targetId: 'tab', startedAt: new Date(0), baseMs: 0 });
  for (const page of ['0', '1']) await writeFile(join(data, 'session', page, 'page.json'), note);
  const doNothing = async (): Promise<void> => {};
  const sink = { began: doNothing, keep: doNothing, span: doNothing, endSpans: doNothing, done: doNothing };
  const warnings: string[] = [];
  const recorder = await Recorder.open({
    ...{ folder: data, sink, clock: new ManualClock() },
    log: { ...silentLog, warn: event => void warnings.push(event) },
    workers: {} as unknown as RecorderOptions['workers'],
    confine: {} as unknown as RecorderOptions['confine'],
  });
  assert.equal(await recorder.whenSettled('session'), false);
  assert.deepEqual(warnings, ['recording.not_resumed']);
  const listLeftovers = (): Promise<string[]> => readdir(join(data, 'session'));
  await eventually('the other page to be stored', listLeftovers, names => names.join() === '0');
  await rm(unreadablePath, { recursive: true });
  await eventually('the page to be stored', () => recorder.whenSettled('session'));
  await recorder.close();
});

test('continues to record a live session if the recording of one page is unreadable, and does not overwrite that recording', async () => {
  const data = join(folder, 'adopted');
  const unreadablePath = join(data, 'session/0/1.0.6000.mkv');
  await mkdir(unreadablePath, { recursive: true });
  await mkdir(join(data, 'session/1'));
  for (const page of ['0', '1']) {
    const note = { targetId: `tab-${page}`, startedAt: new Date(0), baseMs: 0 };
    await writeFile(join(data, 'session', page, 'page.json'), JSON.stringify(note));
  }
  const doNothing = async (): Promise<void> => {};
  const sink = { began: doNothing, keep: doNothing, span: doNothing, endSpans: doNothing, done: doNothing };
  const warnings: unknown[] = [];
  const recorder = await Recorder.open({
    ...{ folder: data, sink, clock: new ManualClock() },
    log: { ...silentLog, warn: (event, fields) => void warnings.push([event, fields?.page]) },
    workers: {} as unknown as RecorderOptions['workers'],
    confine: {} as unknown as RecorderOptions['confine'],
  });
  const shortfalls: unknown[] = [];
  const recording = await recorder.record({
    ...{ session: 'session', maskKind: 'password', secrets: { forms: [] } },
    reportShortfall: (...shortfall) => void shortfalls.push(shortfall),
  });
  assert.deepEqual(warnings, [['recording.not_resumed', 0]]);

  for (const page of [0, 1]) recording.recordPage(new FakeTarget(`tab-${page}`), page, { at: new Date(0) });
  assert.deepEqual(shortfalls, [['not_resumed', 'tab-0', 0]]);
  assert.equal(recording.hubOfTarget('tab-0'), undefined, 'the page is not recorded');
  assert.ok(recording.maskOfTarget('tab-0'), 'credentials can still be typed into the page');
  assert.ok(recording.hubOfTarget('tab-1'), 'the other page is recorded');

  await recorder.finish('session');
  assert.deepEqual(warnings.slice(1), [['recording.not_resumed', 0]], 'it is tried again when the session ends');
  await rm(unreadablePath, { recursive: true });
  await eventually('all pages to be stored', () => recorder.whenSettled('session'));
  await recorder.close();
});

/** The smallest JPEG whose size can be read: 200 x 100 pixels. It cannot be decoded. */
const PICTURE_HEX = 'ffd8ffc0001108006400c803012200021101031101ffda000c03010002110311003f001234ffd9';

/** The position of the out-of-process frame in its page, and the position of its password field in the frame. */
const FRAME_QUAD = [30, 20, 130, 20, 130, 80, 30, 80];
const FIELD_QUAD = [5, 7, 55, 7, 55, 27, 5, 27];

/** Simulates a page without fields or, with `parent`, an out-of-process frame that has one password field. */
class FakeTarget implements TargetChannel {
  readonly id: string;
  readonly kind: string;
  readonly url = 'https://page.test/';
  readonly parent: TargetChannel | undefined;
  readonly sent: string[] = [];
  isGone = false;
  readonly #listeners: Array<Parameters<TargetChannel['on']>[0]> = [];
  readonly #goneListeners: Array<() => void> = [];

  constructor(id: string, parent?: TargetChannel) {
    this.id = id;
    this.kind = parent ? 'iframe' : 'page';
    this.parent = parent;
  }

  async send(method: string): Promise<JsonObject> {
    this.sent.push(method);
    const isPage = this.kind === 'page';
    if (method === 'Page.getFrameTree') return { frameTree: { frame: { id: this.id } } };
    if (method === 'Page.createIsolatedWorld') return { executionContextId: 1 };
    if (method === 'Runtime.evaluate') return { result: { value: isPage ? [] : [[0, 0, 0, 0]], objectId: 'field' } };
    if (method === 'DOM.getFrameOwner') return { backendNodeId: 1 };
    if (method === 'DOM.getContentQuads') return { quads: [isPage ? FRAME_QUAD : FIELD_QUAD] };
    return {};
  }

  post(): void {}

  on(listener: Parameters<TargetChannel['on']>[0]) {
    this.#listeners.push(listener);
    return { close: () => {} };
  }

  whenGone(listener: () => void): void {
    this.#goneListeners.push(listener);
  }

  paint(): void {
    const params = { data: '', sessionId: 1, metadata: { timestamp: 1, monotonicTimestamp: 1 } };
    for (const listener of this.#listeners) listener('Page.screencastFrame', params, Buffer.from(PICTURE_HEX, 'hex'));
  }

  end(): void {
    this.isGone = true;
    for (const listener of this.#goneListeners) listener();
  }
}

test('masks a password field in a cross-site frame that appeared while its page was waiting to be recorded', async () => {
  const paintedRects: unknown[] = [];
  const run = async (_: unknown, { rects }: BlackoutInput) => {
    paintedRects.push(rects);
    return {};
  };
  const recorder = await Recorder.open({
    ...{ folder: join(folder, 'masks'), clock: new ManualClock(), log: silentLog },
    sink: {} as unknown as RecorderOptions['sink'],
    workers: { run } as unknown as RecorderOptions['workers'],
    confine: {} as unknown as RecorderOptions['confine'],
  });
  const secrets = { forms: [] };
  const unrecordedIds: string[] = [];
  const recording = await recorder.record({
    session: 'session',
    maskKind: 'password',
    secrets,
    reportShortfall: (_, target = '') => void unrecordedIds.push(target),
  });
  const pages = Array.from({ length: PAGES_AT_ONCE_MAX + 2 }, (_, page) => new FakeTarget(`page-${page}`));
  for (const [page, target] of pages.entries()) recording.recordPage(target, page, { at: new Date(0) });
  const [first, waitingPage, last] = [pages[0], pages.at(-2), pages.at(-1)];
  assert.ok(first && waitingPage && last);
  const frame = new FakeTarget('frame', waitingPage);
  recording.addFrame(frame);

  await recording.cover(true);
  assert.ok(frame.sent.includes('Runtime.evaluate'), 'the field can be hidden while the page waits');

  first.end();
  recording.recordPage(new FakeTarget('late'), pages.length, { at: new Date(0) });
  assert.deepEqual(
    unrecordedIds,
    [waitingPage.id, last.id, 'late'],
    'the page that waited longest gets the free place',
  );
  await eventually('the page to be recorded', () => waitingPage.sent.includes('Page.startScreencast'));
  waitingPage.paint();
  await eventually('a picture to be masked', () => paintedRects.length > 0);
  assert.deepEqual(paintedRects[0], [{ x: 34, y: 26, width: 52, height: 22 }], 'the field, with a margin of one pixel');

  assert.ok(recording.maskOfTarget(last.id));
  last.end();
  assert.equal(recording.maskOfTarget(last.id), undefined, 'a page that ends while it waits leaves nothing behind');
  await recorder.close();
});
