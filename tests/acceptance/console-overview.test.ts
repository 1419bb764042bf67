// The overview in a browser: the history of an application as charts, as tables, and by agent key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boxProcessesOf, kill } from '../faults/victims.ts';
import {
  DESKTOP,
  DESKTOP_DARK,
  type DisplaySettings,
  ensureConsoleBuilt,
  findConsoleLink,
  PHONE,
  PHONE_DARK,
  visitSessions,
} from '../harness/console.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { openPages } from '../harness/pages.ts';
import { insertUsageHistory } from '../harness/past.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

await ensureConsoleBuilt();
const pages = await openPages();
const server = await startServer({ pages, env: { BERTH_ENGINE: LIGHT_ENGINE } });
const link = findConsoleLink(server);
const overviewUrl = `${server.url}/console/a/${server.applicationId}`;

const NARROW_SCREEN: DisplaySettings = { ...DESKTOP, width: 1024 };
const LOOKS = [DESKTOP, DESKTOP_DARK, NARROW_SCREEN, { ...NARROW_SCREEN, colours: 'dark' }, PHONE, PHONE_DARK] as const;

test('the overview states that there are no sessions in the period', () =>
  visitSessions(server, link, PHONE, async watched => {
    const { page } = watched;
    await page.goto(overviewUrl);
    await page.getByText('No sessions in this period').waitFor();
    await watched.assertAccessible();
  }));

test('the start page shows the usage of the application this week, and other periods can be chosen by keyboard alone', async () => {
  await insertUsageHistory(server);
  await visitSessions(server, link, DESKTOP, async ({ page }) => {
    await page.goto(`${server.url}/console/`);
    await page.getByText(/^\d+ sessions created, \d+ of \d+ ended sessions failed\. Failures/).waitFor();
    const week = page.getByRole('button', { name: 'Last 7 days' });
    assert.equal(await week.getAttribute('aria-pressed'), 'true');
    await page.getByRole('row').filter({ hasText: 'First key' }).waitFor();
    await page.getByText('Browser time').first().waitFor();
    for (let tabs = 0; tabs < 60 && !(await week.evaluate(one => one.matches(':focus'))); tabs += 1)
      await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Last 30 days', pressed: true }).waitFor();
    assert.match(page.url(), /period=month/);
    await page.getByRole('img', { name: /^Sessions in the last 30 days/ }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    const table = page.getByRole('table', { name: /^Sessions in the last 30 days/ });
    await table.waitFor();
    assert.equal(await table.getByRole('row').count(), 31);
  });
});

test('a failed session is counted under its end reason, which links to a list that contains the session', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const { id } = await server.createSession({ keepAlive: true });
    kill(boxProcessesOf(server, id).browser);
    await server.waitUntilEnded(id);
    await page.goto(`${overviewUrl}?period=day`);
    await page.getByRole('link', { name: 'The browser crashed' }).click();
    await page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor();
    const countLinks = () => page.locator(`a[href*="${id}"]`).count();
    await eventually('the session to be listed', countLinks, count => count > 0);
  }));

for (const look of LOOKS)
  test(`the overview has no serious accessibility findings and no overflow at ${look.width} pixels in the ${look.colours} theme`, () =>
    visitSessions(server, link, look, async watched => {
      const { page } = watched;
      for (const period of ['day', 'week', 'month']) {
        await page.goto(`${overviewUrl}?period=${period}`);
        await page.getByText(/ended sessions failed\. Failures/).waitFor();
        for (const summary of await page.getByText('Show as table').all()) await summary.click();
        await watched.assertAccessible();
      }
    }));
