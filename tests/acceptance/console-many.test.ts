// The console for an application with ten thousand sessions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { DESKTOP, ensureConsoleBuilt, findConsoleLink, visitSessions } from '../harness/console.ts';
import { insertSessions } from '../harness/past.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const SESSION_COUNT = 10_000;
/** A tall window, in which the test needs fewer steps than in a window of the usual height. */
const TALL_WINDOW = { ...DESKTOP, height: 4_800 };
const STEPS_MAX = 2_000;

await ensureConsoleBuilt();
const server = await startServer();
await insertSessions(server, SESSION_COUNT);
const link = findConsoleLink(server);

interface DrawnRows {
  readonly first: number;
  readonly last: number;
  readonly total: number;
  readonly isWhole: boolean;
}

/** Returns the first and the last row that are drawn, and whether the rows cover the window without a gap. */
const readDrawnRows = (page: Page): Promise<DrawnRows> =>
  page.getByRole('list', { name: 'Sessions' }).evaluate((list: unknown) => {
    const { innerHeight }: { innerHeight: number } = Object(globalThis);
    const rows: Array<{ place: number; size: number; top: number; bottom: number }> = [...Object(list).children]
      .map(row => {
        const { top, bottom } = row.getBoundingClientRect();
        return { place: Number(row.ariaPosInSet), size: Number(row.ariaSetSize), top, bottom };
      })
      .sort((a, b) => a.place - b.place);
    const [first, last] = [rows[0], rows.at(-1)];
    if (!first || !last) return { first: 0, last: 0, total: 0, isWhole: false };
    const { top, bottom } = Object(list).getBoundingClientRect();
    return {
      ...{ first: first.place, last: last.place, total: first.size },
      isWhole:
        first.top <= Math.max(0, top) + 1 &&
        last.bottom >= Math.min(innerHeight, bottom) - 1 &&
        rows.every((row, at) => at === 0 || Math.abs(row.top - (rows[at - 1]?.bottom ?? 0)) < 1),
    };
  });

test('the list of sessions can be scrolled from the newest to the oldest session without gaps', () =>
  visitSessions(server, link, TALL_WINDOW, async ({ page }) => {
    const list = page.getByRole('list', { name: 'Sessions' });
    await list.waitFor();
    let lastRow = 0;
    for (let step = 0; lastRow < SESSION_COUNT; step += 1) {
      assert.ok(step < STEPS_MAX, `only ${lastRow} sessions after ${step} steps`);
      const drawnRows = await eventually(
        `rows after row ${lastRow} to be drawn`,
        () => readDrawnRows(page),
        one => one.isWhole && one.last > lastRow,
      );
      assert.ok(drawnRows.first <= lastRow + 1, `row ${lastRow + 1} was never drawn; the first is ${drawnRows.first}`);
      lastRow = drawnRows.last;
      await page.evaluate('scrollBy(0, innerHeight)');
    }
    assert.equal((await readDrawnRows(page)).total, SESSION_COUNT);
    await page.getByRole('link', { name: `Order ${SESSION_COUNT} ` }).waitFor();
  }));

test('an old session can be found by keyboard alone from the start page', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    await page.goto(`${server.url}/console/`);
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('9990 crashed');
    await page.getByRole('option', { selected: true }).filter({ hasText: 'Order 9990' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Why the session ended' }).getByText('The browser crashed').waitFor();
  }));
