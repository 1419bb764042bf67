// `node bench/recording.ts [--seconds N]`: measures the cost of recording, compared with the same pages without
// recording and with x264 at a constant 25 fps, which most other services use. Also measures the cost of the playlists
// and files of a recording of one hour. Prints a Markdown table.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { openDisk } from '../server/engines/artifacts/disk.ts';
import { asKey } from '../server/engines/artifacts/keys.ts';
import { Ffmpeg } from '../server/engines/recorder/ffmpeg.ts';
import { segmentBytes } from '../server/engines/recorder/fmp4.ts';
import { journalFrame, journalHead } from '../server/engines/recorder/matroska.ts';
import { mp4Head } from '../server/engines/recorder/mp4.ts';
import { systemClock } from '../server/kit/clock.ts';
import { CdpClient } from '../tests/harness/cdp.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { jailedHelper } from '../tests/harness/helpers.ts';
import { fetchPlaylist, listReplays } from '../tests/harness/recordings.ts';
import { TestServer } from '../tests/harness/server.ts';
import { describeMachine, readMachine } from './machine.ts';
import { MOVING_PAGES } from './moving-pages.ts';
import { boxPids, cpuSecondsWithChildren, createCpuMeter, pidsOutsideBoxes } from './processes.ts';

/** The time until the first segments of all pages are encoded. */
const SETTLE_MS = 15_000;
/** How long to wait after the measurement until the last segments are stored. */
const STORE_WAIT_MS = 8_000;
const CONSTANT_FPS = 25;
const HOUR_SEGMENTS = 600;
const PLAYLIST_REQUESTS = 50;

const RECORDING_MODES = ['off', 'recorded', 'x264 at 25 fps'] as const;

interface Cost {
  /** CPU seconds per minute of Chromium and its jail. */
  readonly browserCpuSeconds: number;
  /** CPU seconds per minute of the server, its database and the encoders. */
  readonly serverCpuSeconds: number;
  /** Size of the recording, in MiB per minute. */
  readonly mebibytesPerMinute: number;
}

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' } } });
const seconds = Number(values.seconds);
const server = new TestServer({ isMeasured: true }, await claimFreePort());

/** Counts the CPU time of the server, its database, its encoders and the browsers. */
let cpuMeter: ReturnType<typeof createCpuMeter> | undefined;
const cpuSecondsUsed = (): number => cpuMeter?.seconds() ?? 0;

async function measureCost(
  page: keyof typeof MOVING_PAGES,
  recordingMode: (typeof RECORDING_MODES)[number],
): Promise<Cost> {
  const { id, connectUrl } = await server.createSession({
    keepAlive: true,
    recordSession: recordingMode === 'recorded',
    logSession: false,
  });
  const client = await CdpClient.connect(connectUrl);
  const channel = await client.attachToPage();
  await client.send('Page.navigate', { url: MOVING_PAGES[page] }, channel);
  const constantRateRecorder =
    recordingMode === 'x264 at 25 fps' ? await recordAtConstantRate(client, channel) : undefined;
  await systemClock.sleep(SETTLE_MS);
  const cpuBefore = {
    box: cpuSecondsWithChildren(boxPids(server)),
    all: cpuSecondsUsed(),
    constant: constantRateRecorder?.cpu() ?? 0,
  };
  await systemClock.sleep(seconds * 1000);
  const boxCpuSeconds = cpuSecondsWithChildren(boxPids(server)) - cpuBefore.box;
  const encoderCpuSeconds = (constantRateRecorder?.cpu() ?? 0) - cpuBefore.constant;
  const outsideCpuSeconds = cpuSecondsUsed() - cpuBefore.all - boxCpuSeconds + encoderCpuSeconds;
  const constantRateBytes = await constantRateRecorder?.stop();
  if (recordingMode === 'recorded') await systemClock.sleep(STORE_WAIT_MS);
  const minutes = (SETTLE_MS + seconds * 1000) / 60_000;
  const bytesPerMinute =
    recordingMode === 'recorded' ? await storedBytesPerMinute(id) : (constantRateBytes ?? 0) / minutes;
  await client.close();
  await server.release(id);
  const perMinute = 60 / seconds;
  return {
    browserCpuSeconds: boxCpuSeconds * perMinute,
    serverCpuSeconds: outsideCpuSeconds * perMinute,
    mebibytesPerMinute: bytesPerMinute / 1024 ** 2,
  };
}

async function storedBytesPerMinute(id: string): Promise<number> {
  const playlist = (await fetchPlaylist(server, id, '0')) ?? '';
  const urls = playlist.split('\n').filter(line => line.startsWith('http'));
  const sizes = await Promise.all(
    urls.map(async url => Number((await fetch(url, { method: 'HEAD' })).headers.get('content-length'))),
  );
  const playedSeconds = [...playlist.matchAll(/#EXTINF:([\d.]+)/g)].reduce(
    (sum, [, length]) => sum + Number(length),
    0,
  );
  return (sizes.reduce((sum, size) => sum + size, 0) / playedSeconds) * 60;
}

/** Takes a frame whenever the page changes, and encodes the newest one 25 times per second. */
async function recordAtConstantRate(client: CdpClient, channel: string) {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const file = join(folder, 'film.mp4');
  const inputArgs = ['-f', 'image2pipe', '-c:v', 'mjpeg', '-framerate', String(CONSTANT_FPS), '-i', 'pipe:0'];
  const ffmpeg = spawn(
    'ffmpeg',
    [
      '-v',
      'error',
      ...inputArgs,
      '-c:v',
      'libx264',
      '-preset',
      'veryfast',
      '-pix_fmt',
      'yuv420p',
      '-threads',
      '1',
      file,
    ],
    { stdio: ['pipe', 'ignore', 'ignore'] },
  );
  let newestFrame: Buffer | undefined;
  let eventsRead = 0;
  const timer = setInterval(() => {
    for (; eventsRead < client.events.length; eventsRead++) {
      const { method, params } = client.events[eventsRead] ?? {};
      if (method !== 'Page.screencastFrame') continue;
      newestFrame = Buffer.from(String(params?.data), 'base64');
      void client.ask('Page.screencastFrameAck', { sessionId: params?.sessionId }, channel).catch(() => {});
    }
    if (newestFrame) ffmpeg.stdin.write(newestFrame);
  }, 1000 / CONSTANT_FPS);
  await client.send('Page.startScreencast', { format: 'jpeg', quality: 80 }, channel);
  return {
    cpu: () => cpuSecondsWithChildren([ffmpeg.pid ?? 0]),
    stop: async () => {
      clearInterval(timer);
      ffmpeg.stdin.end();
      await new Promise(resolve => ffmpeg.once('close', resolve));
      const { size } = statSync(file);
      rmSync(folder, { recursive: true, force: true });
      return size;
    },
  };
}

async function measurePlaylistMs(): Promise<number> {
  const { id } = await server.createSession({ keepAlive: true });
  while ((await listReplays(server, id)).length === 0) await systemClock.sleep(500);
  const requestTimes: number[] = [];
  for (let turn = 0; turn < PLAYLIST_REQUESTS; turn++) {
    const startMs = systemClock.monotonicMs();
    await fetchPlaylist(server, id, '0');
    requestTimes.push(systemClock.monotonicMs() - startMs);
  }
  await server.release(id);
  return requestTimes.sort((a, b) => a - b)[PLAYLIST_REQUESTS / 2] ?? 0;
}

/** Joins six hundred segments of 200 KiB, and syncs the file to disk. */
async function measureJoin(): Promise<{ wallMs: number; cpuSeconds: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  try {
    const disk = await openDisk(folder);
    const jpegArgs = [
      '-v',
      'error',
      '-f',
      'lavfi',
      '-i',
      'testsrc2=size=1280x720:rate=5',
      '-frames:v',
      '1',
      '-f',
      'mjpeg',
      'pipe:1',
    ];
    const jpeg = await buffer(spawn('ffmpeg', jpegArgs, { stdio: ['ignore', 'pipe', 'ignore'] }).stdout);
    const size = { width: 1280, height: 720 };
    const journalPath = join(folder, 'frame.mkv');
    writeFileSync(journalPath, Buffer.concat([journalHead(size), journalFrame({ atMs: 0, jpeg })]));
    const [encoded] = await new Ffmpeg(jailedHelper).encode([{ path: journalPath, times: [0], size }]);
    if (!encoded) throw new Error('ffmpeg produced no segment');
    const { init } = encoded;
    const sizes = Array.from({ length: 30 }, () => 7_000);
    const durationsMs = sizes.map(() => 200);
    const payload = Buffer.alloc(210_000, 7);
    const keyOf = (n: number) => asKey(`bench/${n}.m4s`);
    for (let n = 0; n < HOUR_SEGMENTS; n++) {
      const { bytes } = segmentBytes({ sequence: n + 1, startMs: n * 6000, durationsMs, sizes, payload });
      await disk.put(
        keyOf(n),
        (async function* () {
          yield bytes;
        })(),
      );
    }
    const [startMs, startCpuUsage] = [systemClock.monotonicMs(), process.cpuUsage()];
    const { head } = mp4Head(
      init,
      size,
      Array.from({ length: HOUR_SEGMENTS }, () => ({ durationsMs, sizes })),
    );
    await disk.put(
      asKey('bench/film.mp4'),
      (async function* () {
        yield head;
        for (let n = 0; n < HOUR_SEGMENTS; n++) yield (await disk.read(keyOf(n))) ?? Buffer.alloc(0);
      })(),
    );
    const { user, system } = process.cpuUsage(startCpuUsage);
    return { wallMs: systemClock.monotonicMs() - startMs, cpuSeconds: (user + system) / 1e6 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

try {
  await server.start();
  cpuMeter = createCpuMeter(pidsOutsideBoxes(server));
  const rows: string[] = [];
  for (const page of ['idle', 'agent', 'moving'] as const)
    for (const recordingMode of RECORDING_MODES) {
      process.stderr.write(`bench: ${page}, ${recordingMode}\n`);
      const { browserCpuSeconds, serverCpuSeconds, mebibytesPerMinute } = await measureCost(page, recordingMode);
      rows.push(
        `| ${page} | ${recordingMode} | ${browserCpuSeconds.toFixed(2)} | ${serverCpuSeconds.toFixed(2)} | ${mebibytesPerMinute.toFixed(2)} |`,
      );
    }
  const [playlistMs, joinTimes] = [await measurePlaylistMs(), await measureJoin()];
  process.stdout.write(`Measured on: ${describeMachine(await readMachine())}; ${seconds} s each.\n\n`);
  process.stdout.write(
    '| Page | Recording | Chromium, CPU s/min | outside, CPU s/min | MiB/min |\n| --- | --- | ---: | ---: | ---: |\n',
  );
  process.stdout.write(`${rows.join('\n')}\n\nPlaylist, median: ${playlistMs.toFixed(1)} ms. `);
  process.stdout.write(
    `MP4 of an hour (126 MB): ${joinTimes.wallMs.toFixed(0)} ms, ${joinTimes.cpuSeconds.toFixed(2)} CPU s.\n`,
  );
} finally {
  await server.close();
  cpuMeter?.close();
}
process.exit();
