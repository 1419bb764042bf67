// Three clients (bare CDP, Playwright, Puppeteer) open pages in several ways, in a session and in a Chromium without
// Berth. A client must observe the same in both, except for the differences listed in docs/connecting.md. The order of
// some events varies in any Chromium. Therefore, both runs are repeated until each kind of observation is equal in at
// least one pair of runs.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { PlainChromium } from '../harness/by-hand.ts';
import { CELL_PAGES, CELLS, type Cell, type Driver, type Tracks, type TracksReader } from '../harness/client-cells.ts';
import { KnownDifferences } from '../harness/known-differences.ts';
import { openPages } from '../harness/pages.ts';
import { PlaywrightDriver } from '../harness/playwright-driver.ts';
import { PuppeteerDriver } from '../harness/puppeteer-driver.ts';
import { RawDriver } from '../harness/raw-driver.ts';
import { startServer } from '../harness/server.ts';

const ROUNDS_MAX = 6;
const SHOWN_DIFFERENCES_MAX = 6;
const CLIENTS = {
  'A client of bare CDP': RawDriver,
  Playwright: PlaywrightDriver,
  Puppeteer: PuppeteerDriver,
} as const;

const pages = await openPages(CELL_PAGES);
const server = await startServer({ pages });
const plainChromium = await PlainChromium.start();
after(() => plainChromium.close());
await plainChromium.resize({ width: 1280, height: 720 });
const watchedSession = await server.createSession({ keepAlive: true, browserSettings: { enablePdfViewer: true } });
const unwatchedSession = await server.createSession({
  keepAlive: true,
  browserSettings: { enablePdfViewer: true, logSession: false, recordSession: false },
});

interface Side {
  readonly name: string;
  readonly url: string;
  readonly known: KnownDifferences;
  /**
   * The same known differences, applied to the Chromium without Berth. Detects listed differences that are not caused
   * by Berth.
   */
  readonly knownByHand: KnownDifferences;
}

const SIDES: readonly Side[] = [
  side('in a session with log and recording', watchedSession.connectUrl, 'every difference'),
  side('in a session without them', unwatchedSession.connectUrl, 'those of every session'),
];

/**
 * The observations for one cell (a browser context and a way of opening pages), one entry for each run. `byHand` is the
 * Chromium without Berth.
 */
interface Comparison {
  readonly byHand: Tracks[];
  readonly inSession: Tracks[];
}

for (const [client, { open }] of Object.entries(CLIENTS))
  test(`with ${client}, a session behaves like a manually started Chromium for every kind of page`, async t => {
    const directDriver = await open(plainChromium.url, pages.url);
    const sessions = await Promise.all(SIDES.map(({ url }) => open(url, pages.url)));
    const ratios: number[][] = SIDES.map(() => []);
    const differences: string[] = [];
    try {
      for (const cell of CELLS) {
        const [first, ...others] = await Promise.all([directDriver, ...sessions].map(driver => runTimed(driver, cell)));
        for (const [at, session] of sessions.entries()) {
          const [side, seen] = [SIDES[at], others[at]];
          assert.ok(side && seen && first);
          ratios[at]?.push(seen.ms / first.ms);
          const comparison = { byHand: [first.seen(side.knownByHand)], inSession: [seen.seen(side.known)] };
          await runAgain(cell, side, comparison, directDriver, session);
          for (const track of differingTracks(comparison))
            differences.push(`${side.name}, ${JSON.stringify(cell)}, ${describeTrack(track, comparison)}`);
        }
      }
    } finally {
      await Promise.all([directDriver, ...sessions].map(driver => driver.close()));
    }
    for (const [at, each] of ratios.entries())
      t.diagnostic(`time ${SIDES[at]?.name}: ${median(each).toFixed(2)} of that by hand`);
    assert.equal(differences.length, 0, differences.slice(0, SHOWN_DIFFERENCES_MAX).join('\n\n'));
  });

test('every difference that docs/connecting.md lists between a session and a manually started Chromium is observed', () => {
  for (const { known, knownByHand } of SIDES) assert.deepEqual(known.unnecessaryLines(knownByHand), []);
});

function side(name: string, url: string, which: 'every difference' | 'those of every session'): Side {
  return { name, url, known: new KnownDifferences(which), knownByHand: new KnownDifferences(which) };
}

async function runTimed(driver: Driver, cell: Cell): Promise<{ readonly seen: TracksReader; readonly ms: number }> {
  const startMs = performance.now();
  const seen = await driver.run(cell);
  return { seen, ms: performance.now() - startMs };
}

async function runAgain(
  cell: Cell,
  side: Side,
  comparison: Comparison,
  directDriver: Driver,
  session: Driver,
): Promise<void> {
  for (let round = 1; round < ROUNDS_MAX && differingTracks(comparison).length > 0; round++) {
    const [byHand, inSession] = await Promise.all([directDriver.run(cell), session.run(cell)]);
    comparison.byHand.push(byHand(side.knownByHand));
    comparison.inSession.push(inSession(side.known));
  }
}

/** Returns the names of the tracks in which no run in the session equals a run in the Chromium without Berth. */
function differingTracks({ byHand, inSession }: Comparison): readonly string[] {
  const tracks = new Set([...byHand, ...inSession].flatMap(one => [...one.keys()]));
  const textsByHandOf = (track: string): ReadonlySet<string> => new Set(byHand.map(one => textOf(one, track)));
  return [...tracks].filter(track => !inSession.some(one => textsByHandOf(track).has(textOf(one, track))));
}

const textOf = (tracks: Tracks, track: string): string => tracks.get(track)?.join('\n      ') ?? 'nothing';

function describeTrack(track: string, { byHand, inSession }: Comparison): string {
  const joinTexts = (all: readonly Tracks[]): string =>
    [...new Set(all.map(one => textOf(one, track)))].join('\n    or\n      ');
  return `${track}\n    in the session\n      ${joinTexts(inSession)}\n    by hand\n      ${joinTexts(byHand)}`;
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}
