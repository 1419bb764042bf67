// A player in a headless browser: hls.js, which fetches the playlist as often as needed.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { launchOutsideBrowser } from './outside-browser.ts';

const PLAY_MS_MAX = 180_000;
const HLS_SCRIPT_PATH = createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js');

export interface PlaybackResult {
  readonly errors: readonly string[];
  readonly hasEnded: boolean;
  readonly seconds: number;
  /** The color that the player shows after a seek to the green part. */
  readonly colourAt: { readonly green: readonly number[] };
}

/** Plays the recording to its end at four times the speed, then seeks to the green part. */
export async function playFilm(playlist: () => Promise<string | undefined>): Promise<PlaybackResult> {
  const server = createServer(async (request, response) => {
    const isPlaylist = request.url?.startsWith('/list') ?? false;
    response.setHeader('content-type', isPlaylist ? 'application/vnd.apple.mpegurl' : 'text/html');
    if (isPlaylist) response.end(await playlist());
    else response.end(request.url === '/hls.js' ? readFileSync(HLS_SCRIPT_PATH) : PAGE);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const browser = await launchOutsideBrowser();
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/`);
    return (await page.evaluate(`(${PLAY_SCRIPT})(${PLAY_MS_MAX})`)) as PlaybackResult;
  } finally {
    await browser.close();
    server.closeAllConnections();
    server.close();
  }
}

const PAGE = '<!doctype html><video muted width=320></video><script src="/hls.js"></script>';

/** The source of a function that runs in the page with the player. It plays the recording and returns what happened. */
const PLAY_SCRIPT = `async withinMs => {
  const video = document.querySelector('video');
  const errors = [];
  const hls = new Hls();
  // These errors are not counted: on a busy machine the decoder is slow, and the player waits and moves its position.
  const late = /bufferStalled|bufferNudgeOnStall/;
  hls.on(Hls.Events.ERROR, (_, data) => { if (data.fatal || !late.test(data.details)) errors.push(data.details); });
  const ended = new Promise(resolve => video.addEventListener('ended', () => resolve(true), { once: true }));
  const given = new Promise(resolve => setTimeout(() => resolve(false), withinMs));
  hls.loadSource('/list.m3u8');
  hls.attachMedia(video);
  await new Promise(resolve => video.addEventListener('canplay', resolve, { once: true }));
  await video.play();
  video.playbackRate = 4;
  const isEnded = await Promise.race([ended, given]);
  const canvas = new OffscreenCanvas(1, 1);
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const colour = () => { context.drawImage(video, video.videoWidth / 2, video.videoHeight / 2, 1, 1, 0, 0, 1, 1); return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3); };
  video.pause();
  let green = [];
  const isGreen = () => green[1] > 200 && green[0] < 60;
  // On a busy machine a frame may arrive later than its event, so it is checked again.
  for (let pass = 0; pass < 3 && !isGreen(); pass++)
    for (let at = 0; at < video.duration && !isGreen(); at += 0.5) {
      const sought = new Promise(resolve => video.addEventListener('seeked', resolve, { once: true }));
      video.currentTime = at;
      await sought;
      for (let frames = 0; frames < 2 + 8 * pass; frames++) await new Promise(resolve => requestAnimationFrame(resolve));
      green = colour();
    }
  return { errors, hasEnded: isEnded, seconds: video.duration, colourAt: { green } };
}`;
