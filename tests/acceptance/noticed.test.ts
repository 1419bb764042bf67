// Checks docs/what-pages-notice.md, which lists what a page can observe, and how that differs between a session and
// plain Chromium. Each line is checked in a session and in a Chromium that was started without Berth. No client is
// attached to the page during the check. The page reports to its own server.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { PlainChromium } from '../harness/by-hand.ts';
import { CdpClient } from '../harness/cdp.ts';
import { createLookPages, documentedChecks, type Observations } from '../harness/look.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

/** Maps each line of the document for which Berth differs from Chromium to what a page observes in Berth. */
const OURS: Readonly<Record<string, unknown>> = { WebRTC: ['complete'] };

const looks = createLookPages();
const pages = await openPages(looks.pages);
const server = await startServer({ pages });
const plainChromium = await PlainChromium.start();
after(() => plainChromium.close());
await plainChromium.resize({ width: 1280, height: 720 });
const loggedSession = await server.createSession({ keepAlive: true, browserSettings: { enablePdfViewer: true } });
const unloggedSession = await server.createSession({
  keepAlive: true,
  browserSettings: { enablePdfViewer: true, logSession: false, recordSession: false },
});

const chromiumObservations = await look(plainChromium.url, 'side-0');
const loggedObservations = await look(loggedSession.connectUrl, 'side-1');
const unloggedObservations = await look(unloggedSession.connectUrl, 'side-2');

for (const line of documentedChecks())
  test(`what a page observes in a session matches plain Chromium or the documented difference: ${line}`, () => {
    assert.notEqual(chromiumObservations[line], undefined);
    const expected = line in OURS ? OURS[line] : chromiumObservations[line];
    assert.deepEqual(unloggedObservations[line], expected);
    assert.deepEqual(loggedObservations[line], expected);
  });

test('no request header reveals a proxy', () => {
  for (const seen of [loggedObservations, unloggedObservations])
    assert.doesNotMatch(JSON.stringify(seen.headers), /"(proxy-|via|x-forwarded|forwarded)/i);
});

test('docs/what-pages-notice.md lists exactly the properties that the test page checks', () => {
  assert.deepEqual([...documentedChecks()].sort(), Object.keys(chromiumObservations).sort());
});

async function look(url: string, name: string): Promise<Observations> {
  const client = await CdpClient.connect(url);
  const { targetId } = await client.send('Target.createTarget', { url: `${pages.url}/look?${name}` });
  const seen = await eventually('the findings of the page', () => looks.observationsOf(name));
  await client.send('Target.closeTarget', { targetId });
  await client.close();
  assert.ok(seen);
  return seen;
}
