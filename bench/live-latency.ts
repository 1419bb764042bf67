// Measures how long the canvas of the live view takes to show a change in the page, the effect of a click on the
// canvas, and the effect of a click after five seconds of mouse moves at 1000 per second.
import { systemClock } from '../server/kit/clock.ts';
import { PlainChromium } from '../tests/harness/by-hand.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { evaluateIn, type LiveSide, openLiveSide, openRawSide } from './live-sides.ts';

const FLOOD_SECONDS = 5;
/**
 * The pause before a sample varies from `PAUSE_MIN_MS` to `PAUSE_MIN_MS + PAUSE_SPREAD_MS`, so that samples do not
 * always coincide with periodic work.
 */
const PAUSE_MIN_MS = 120;
const PAUSE_SPREAD_MS = 230;
const PAUSE_STEP_MS = 97;

export interface Latency {
  readonly p50: number;
  readonly p95: number;
  readonly count: number;
}

export interface LatencyFigure {
  readonly name: string;
  readonly target: string;
  readonly raw: Latency;
  readonly ours: Latency;
}

type Sampler = (side: LiveSide, n: number) => Promise<number>;

const sampleChange: Sampler = async ({ source, view }, n) => {
  const [atMs, isWhite] = await evaluateIn<[number, boolean]>(source, `turnAfter(${pauseOf(n)})`);
  return (await evaluateIn<number>(view, `shownAt(${isWhite}, ${atMs})`)) - atMs;
};

const samplePress: Sampler = async ({ view }, n) => {
  await systemClock.sleep(pauseOf(n));
  const { x, y } = await evaluateIn<{ x: number; y: number }>(
    view,
    `(({ left, top }) => ({ x: left + 60, y: top + 60 }))(document.getElementById('canvas').getBoundingClientRect())`,
  );
  const isWhite = await evaluateIn<boolean>(view, 'isWhite()');
  const event = { x, y, button: 'left', clickCount: 1 };
  const pressEvent = { type: 'mousePressed', buttons: 1, ...event };
  await view.connection.send('Input.dispatchMouseEvent', pressEvent, view.page);
  const atMs = await evaluateIn<number>(view, 'pressedAt');
  const shownMs = await evaluateIn<number>(view, `shownAt(${!isWhite}, ${atMs})`);
  const releaseEvent = { type: 'mouseReleased', buttons: 0, ...event };
  await view.connection.send('Input.dispatchMouseEvent', releaseEvent, view.page);
  return shownMs - atMs;
};

const samplePressAfterFlood: Sampler = async (side, n) => {
  await evaluateIn(side.view, `flood(${FLOOD_SECONDS})`);
  return samplePress(side, n);
};

export async function measureLatency(
  server: TestServer,
  samples: number,
  floods: number,
): Promise<readonly LatencyFigure[]> {
  const [browser, viewer] = [await PlainChromium.start(), await PlainChromium.start()];
  const sides = { raw: await openRawSide(browser, viewer), ours: await openLiveSide(server, viewer) };
  try {
    const measureSamples = async (
      name: string,
      target: string,
      sample: Sampler,
      count: number,
    ): Promise<LatencyFigure> => {
      process.stderr.write(`bench: ${name}\n`);
      return { name, target, ...(await measureInTurns(sides, sample, count)) };
    };
    return [
      await measureSamples('page change → canvas', 'p50 ≤ 60, p95 ≤ 150', sampleChange, samples),
      await measureSamples('press → canvas', 'p50 ≤ 60, p95 ≤ 150', samplePress, samples),
      await measureSamples(
        `press after ${FLOOD_SECONDS} s of mouse moves → canvas`,
        '≤ 250',
        samplePressAfterFlood,
        floods,
      ),
    ];
  } finally {
    await sides.ours.close();
    await sides.raw.close();
    await Promise.all([browser.close(), viewer.close()]);
  }
}

/** The sides alternate, so that a slow moment affects both. */
async function measureInTurns(sides: { raw: LiveSide; ours: LiveSide }, sample: Sampler, count: number) {
  const raw: number[] = [];
  const ours: number[] = [];
  for (let n = 0; n < count; n++) {
    raw.push(await sample(sides.raw, n));
    ours.push(await sample(sides.ours, n));
  }
  return { raw: latencyOf(raw), ours: latencyOf(ours) };
}

const pauseOf = (n: number): number => PAUSE_MIN_MS + ((n * PAUSE_STEP_MS) % PAUSE_SPREAD_MS);

function latencyOf(values: readonly number[]): Latency {
  const sortedValues = values.toSorted((one, other) => one - other);
  const percentile = (share: number): number =>
    sortedValues[Math.min(sortedValues.length - 1, Math.floor(sortedValues.length * share))] ?? 0;
  return { p50: percentile(0.5), p95: percentile(0.95), count: sortedValues.length };
}
