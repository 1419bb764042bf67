// A viewer takes control from the agent and gives it back. Checks which side's input is sent and when, and whether the
// agent's handles stay valid.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import type { Handoff } from '../../contract/handoffs.ts';
import type { DebugUrls } from '../../contract/live.ts';
import { CdpClient } from '../harness/cdp.ts';
import { handoffsPath } from '../harness/handoffs.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const pages = await openPages({
  '/form': `<!doctype html><title>Form</title><style>body{margin:0}input,button{position:absolute;left:20px;width:300px;height:40px}
    #name{top:20px}#press{top:80px}</style><input id="name"><button id="press" onclick="presses++">press</button>
    <script>globalThis.presses = 0; document.getElementById('name').focus()</script>`,
  '/save': '<!doctype html><title>Save</title><a download="saved.txt" href="data:text/plain,x">save</a>',
});
const server = await startServer({ pages, clock: 'test' });

const readDebugUrls = async (id: string, query = ''): Promise<DebugUrls> => {
  const { status, body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug${query}`);
  assert.equal(status, 200);
  return body;
};
/** Waits for these events. Events are written in parallel, so they may be stored slightly after control changed. */
const waitForEvents = (id: string, wanted: readonly string[]): Promise<unknown> =>
  eventually(
    `the events ${wanted}`,
    async () => {
      const path = `/v1/browsers/sessions/${id}/events?type=control.taken,control.given_back,control.expired,control.refused`;
      const { body } = await server.api<{ data: ReadonlyArray<{ type: string }> }>('GET', path);
      return body.data.map(({ type }) => type).join();
    },
    told => told === wanted.join(),
  );

/**
 * Less than the interval at which control is renewed (10 s), and less than the time after which a silent viewer is
 * disconnected (25 s).
 */
const STEP_MS = 9_000;

/** Returns how long control lasts without being renewed, in milliseconds after the viewer took control. */
async function readLeaseMs(id: string): Promise<number> {
  const { body } = await server.api<{ data: Handoff[] }>('GET', handoffsPath(server, `?sessionId=${id}`));
  const { claimedAt = '', leaseExpiresAt = '' } = body.data[0] ?? {};
  return Date.parse(leaseExpiresAt) - Date.parse(claimedAt);
}

/** Returns how often viewers of the session have disconnected, according to the server's log. */
const countDisconnects = (id: string): number =>
  server.log().filter(line => line.includes('live.left') && line.includes(id)).length;

async function openFormAsAgent(settings: object = {}) {
  const { id, connectUrl } = await server.createSession({ keepAlive: true, browserSettings: settings });
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await page.goto(`${pages.url}/form`);
  const viewer = await LiveViewer.open((await readDebugUrls(id)).debuggerUrl);
  await eventually('the viewer to see a picture', () => viewer.frameCount > 0);
  return { id, connectUrl, browser, page, viewer };
}

test('input from the agent is queued while a viewer has control and sent afterwards, and element handles stay valid', async () => {
  const { id, browser, page, viewer } = await openFormAsAgent();
  const field = await page.$('#name');
  assert.ok(field);
  await viewer.takeControl();
  let isFilled = false;
  const pendingTyping = page.keyboard.type('agent').then(() => {
    isFilled = true;
  });
  viewer.click(100, 100);
  await eventually('the click of the viewer to arrive', async () => (await page.evaluate('presses')) === 1);
  assert.equal(isFilled, false, 'keyboard input of the agent waits, but the page can be read');
  viewer.click(100, 40);
  viewer.sendInput({ type: 'text', text: 'person ' });
  await eventually('the text of the person', async () => (await field.inputValue()) === 'person ');
  await viewer.giveControl();
  await pendingTyping;
  assert.equal(await field.inputValue(), 'person agent');
  await waitForEvents(id, ['control.taken', 'control.given_back']);
  await viewer.close();
  await browser.close();
  await server.release(id);
});

test('while a viewer has control, input from the agent is refused immediately if takeover is set to refuse', async () => {
  const { id, browser, page, viewer } = await openFormAsAgent({ takeover: 'refuse' });
  await viewer.takeControl();
  await assert.rejects(page.keyboard.type('x'), /a person controls this session/);
  await assert.rejects(page.goto(`${pages.url}/next`), /a person controls this session/);
  assert.equal(await page.title(), 'Form');
  await viewer.giveControl();
  await page.keyboard.type('x');
  await viewer.close();
  await browser.close();
  await server.release(id);
});

test('input that was queued for too long is refused with an error that states the reason, and later input is sent', async () => {
  const { id, connectUrl, viewer, browser } = await openFormAsAgent();
  const client = await CdpClient.connect(connectUrl);
  const channel = await client.attachToPage();
  await viewer.takeControl();
  const refusal = assert.rejects(
    client.send('Input.insertText', { text: 'x' }, channel),
    /the command was queued for the maximum of 30 seconds/,
  );
  await client.send('Runtime.evaluate', { expression: '1' }, channel);
  for (let step = 1; step <= 4; step++) {
    await server.advance(STEP_MS);
    // Waits until the lease is renewed and the viewer's input is received, so that neither the lease nor the viewer
    // times out at the next advance of the clock.
    await eventually(
      'the lease to be renewed',
      () => readLeaseMs(id),
      left => left - step * STEP_MS >= 2 * STEP_MS,
    );
    const countCursorMessages = (): number => viewer.messages.filter(({ type }) => type === 'cursor').length;
    const countBefore = countCursorMessages();
    viewer.sendInput({
      type: 'mouse',
      action: 'move',
      x: 1,
      y: 1,
      button: 'none',
      buttons: 0,
      clicks: 0,
      modifiers: 0,
    });
    await eventually('an input of the person', () => countCursorMessages() > countBefore);
  }
  await refusal;
  await viewer.giveControl();
  await client.send('Input.insertText', { text: 'y' }, channel);
  await client.close();
  await viewer.close();
  await browser.close();
  await server.release(id);
});

test('a second viewer cannot take control, and input from a view-only address is refused', async () => {
  const { id, browser, page, viewer } = await openFormAsAgent();
  const urls = await readDebugUrls(id, '?readOnly=true');
  assert.equal('wsUrl' in urls, false);
  const readOnlyViewer = await LiveViewer.open(`${urls.debuggerUrl}&readOnly=false`);
  const secondViewer = await LiveViewer.open((await readDebugUrls(id)).debuggerUrl);
  await viewer.takeControl();
  for (const otherViewer of [readOnlyViewer, secondViewer]) {
    otherViewer.send({ type: 'take' });
    await eventually('the request for control to be refused', () => otherViewer.last('refused')?.what === 'take');
    otherViewer.send({ type: 'text', fence: viewer.fence, page: viewer.page, text: 'stolen' });
    await eventually('the text input to be refused', () => otherViewer.last('refused')?.what === 'text');
  }
  await viewer.giveControl();
  secondViewer.send({ type: 'take' });
  await eventually('the second viewer to have control', () => secondViewer.last('control')?.who === 'you');
  viewer.sendInput({ type: 'text', text: 'late' });
  await eventually('a refusal of the old fence', () => viewer.last('refused')?.what === 'text');
  assert.equal(await page.inputValue('#name'), '');
  for (const one of [viewer, readOnlyViewer, secondViewer]) await one.close();
  await browser.close();
  await server.release(id);
});

test('a viewer that reconnects in time keeps control, and a viewer that does not reconnect loses control', async () => {
  const { id, browser, page, viewer } = await openFormAsAgent();
  await viewer.takeControl();
  const { holder, fence } = viewer;
  await viewer.close();
  const returnedViewer = await LiveViewer.open((await readDebugUrls(id)).debuggerUrl, holder);
  await eventually('the person to have control again', () => returnedViewer.last('control')?.who === 'you');
  assert.ok(returnedViewer.fence > fence);
  // The test waits until the server has handled both disconnects. Otherwise the server would renew control while the
  // clock is advanced.
  await returnedViewer.close();
  await eventually(
    'both of their connections to be gone',
    () => countDisconnects(id),
    times => times === 2,
  );
  // The agent types only after the clock has been advanced, because earlier input would be queued for too long.
  await server.advance(29_000);
  const pendingTyping = page.keyboard.type('on');
  await server.advance(2_000);
  await pendingTyping;
  assert.equal(await page.inputValue('#name'), 'on');
  await waitForEvents(id, ['control.taken', 'control.expired']);
  await browser.close();
  await server.release(id);
});

test('live view addresses still work after the original time limit if the time limit of the session was extended', async () => {
  const { id } = await server.createSession({ keepAlive: true, timeout: 60 });
  const { debuggerUrl } = await readDebugUrls(id);
  await server.api('POST', `/v1/browsers/sessions/${id}`, { body: { timeout: 600 } });
  await server.advance(61_000);
  const viewer = await LiveViewer.open(debuggerUrl);
  await server.release(id);
  await eventually('the viewer to be notified of the end', () => viewer.last('ended')?.why === 'the session has ended');
});

test('when live view addresses are revoked, their viewers are disconnected and new viewers are refused', async () => {
  const { id, browser, viewer } = await openFormAsAgent();
  const { debuggerUrl } = await eventually(
    'the page with its title',
    () => readDebugUrls(id),
    ({ pages: [first] }) => first?.title === 'Form',
  );
  await server.api('DELETE', `/v1/browsers/sessions/${id}/debug`);
  await eventually('the viewer to be disconnected', () => viewer.last('ended') !== undefined);
  await assert.rejects(LiveViewer.open(debuggerUrl), /403/);
  const freshUrl = (await readDebugUrls(id)).debuggerUrl;
  const freshViewer = await LiveViewer.open(freshUrl);
  await server.release(id);
  await eventually(
    'the viewer to be notified of the end',
    () => freshViewer.last('ended')?.why === 'the session has ended',
  );
  const lateViewer = await LiveViewer.open(freshUrl);
  await eventually('the late viewer to be disconnected', () => lateViewer.closeInfo?.code === 1000);
  assert.equal(lateViewer.last('ended')?.why, 'the session has ended');
  await assert.rejects(LiveViewer.open(freshUrl.replace(/token=[^&]*/, 'token=lv_x')), /403/);
  await browser.close();
});

test('a live view address for one page cannot show or control another page, or offer the downloads of the other page', async () => {
  const { id, browser, page, viewer } = await openFormAsAgent();
  const otherPage = await page.context().newPage();
  for (const one of [page, otherPage]) await one.goto(`${pages.url}/save`);
  await page.bringToFront();
  const [
    ownPage = assert.fail('the session has no page'),
    foreignPage = assert.fail('the session has no second page'),
  ] = (await readDebugUrls(id)).pages;
  const boundViewer = await LiveViewer.open(ownPage.debuggerUrl);
  await eventually('a frame for the viewer', () => boundViewer.frameCount > 0);
  assert.deepEqual(
    boundViewer.tabs.map(tab => tab.page),
    [ownPage.id],
  );
  boundViewer.send({ type: 'watch', page: foreignPage.id });
  await boundViewer.takeControl();
  boundViewer.sendInput({ type: 'navigate', page: foreignPage.id, url: `${pages.url}/form` });
  await eventually(
    'the input for another page to be refused',
    () => boundViewer.last('refused')?.why === 'This link allows input to only one page, and this is another page.',
  );
  boundViewer.send({ type: 'newTab', fence: boundViewer.fence });
  await eventually('the new page', () => viewer.tabs.length === 3);
  await boundViewer.giveControl();
  assert.deepEqual(
    [boundViewer.page, boundViewer.newestFrame?.head.page],
    [ownPage.id, ownPage.id],
    'it still shows its own page',
  );
  assert.equal(otherPage.url(), `${pages.url}/save`);
  const save = (from: typeof page) => from.evaluate(`document.querySelector('a').click()`);
  await save(otherPage);
  await eventually('the offer to the viewer of all pages', () => viewer.last('download')?.name === 'saved.txt');
  assert.equal(boundViewer.last('download'), undefined);
  await save(page);
  await eventually('the offer to the viewer of one page', () => boundViewer.last('download')?.name === 'saved.txt');
  for (const one of [boundViewer, viewer]) await one.close();
  await browser.close();
  await server.release(id);
});

test('a live view address is valid only for its own session and until it expires', async () => {
  const { id, browser, viewer } = await openFormAsAgent();
  const otherSession = await server.createSession({ keepAlive: true });
  const { debuggerUrl } = await readDebugUrls(id);
  await assert.rejects(LiveViewer.open(debuggerUrl.replace(id, otherSession.id)), /403/);
  await assert.rejects(LiveViewer.open(debuggerUrl.replace(/.$/, last => (last === 'A' ? 'B' : 'A'))), /403/);
  const { debuggerUrl: brief } = await readDebugUrls(id, '?expiresIn=60');
  await server.advance(61_000);
  await assert.rejects(LiveViewer.open(brief), /403/);
  const responseWithoutKey = await server.api('GET', `/v1/browsers/sessions/${otherSession.id}/debug`, { key: null });
  assert.equal(responseWithoutKey.status, 401);
  await viewer.close();
  await browser.close();
  await server.release(id);
  await server.release(otherSession.id);
});
