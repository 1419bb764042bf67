// The live view as viewers use it: the real page of the live view, in a second browser, controls a page of a session.
// The results of typing, clicking, dropping and choosing are read from the session's page over CDP.
import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { chromium, type Page } from 'playwright-core';
import type { DebugUrls } from '../../contract/live.ts';
import {
  DESKTOP,
  DESKTOP_DARK,
  ensureConsoleBuilt,
  openWatchedPage,
  PHONE,
  PHONE_DARK,
  type WatchedPage,
} from '../harness/console.ts';
import { FILE_NAME, FILE_TEXT, openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const PAGE = `<!doctype html><title>Desk</title>
<style>
  body { margin: 0; font: 16px sans-serif; height: 3000px; }
  #text { position: absolute; left: 20px; top: 20px; width: 600px; height: 160px; }
  #select { position: absolute; left: 20px; top: 200px; width: 200px; height: 30px; }
  #file { position: absolute; left: 300px; top: 200px; width: 200px; height: 30px; }
  #ask { position: absolute; left: 560px; top: 200px; width: 100px; height: 30px; }
  #from { position: absolute; left: 20px; top: 260px; width: 100px; height: 60px; background: #36c; color: #fff; }
  #to { position: absolute; left: 300px; top: 260px; width: 200px; height: 60px; background: #ddd; }
  #touch { position: absolute; left: 560px; top: 260px; width: 100px; height: 60px; background: #cda; }
  #fixed { position: fixed; left: 700px; top: 20px; cursor: pointer; width: 60px; height: 60px; background: #ace; }
</style>
<textarea id="text"></textarea>
<select id="select"><option>one<option>two<optgroup label="More"><option>three<option disabled>four</optgroup></select>
<input id="file" type="file" multiple>
<button id="ask" onclick="answers.push(confirm('Really?')); answers.push(prompt('Name?', 'nobody'))">ask</button>
<div id="from" draggable="true">drag</div><div id="to">drop</div><div id="touch">touch</div><div id="fixed"></div>
<script>
  globalThis.heard = []; globalThis.answers = [];
  const text = document.getElementById('text');
  for (const type of ['keydown', 'copy', 'cut', 'paste', 'compositionstart', 'compositionend'])
    text.addEventListener(type, event => heard.push(type === 'keydown' ? event.key : type));
  document.getElementById('to').addEventListener('dragover', event => event.preventDefault());
  document.getElementById('to').addEventListener('drop', event => { event.preventDefault(); heard.push('drop'); });
  document.getElementById('from').addEventListener('dragend', () => heard.push('dragend'));
  for (const type of ['touchstart', 'touchend'])
    document.getElementById('touch').addEventListener(type, () => heard.push(type));
  document.getElementById('select').addEventListener('change', event => heard.push('chose ' + event.target.value));
  document.getElementById('fixed').addEventListener('click', () => heard.push('clicked'));
</script>`;

await ensureConsoleBuilt();
const FRAMED_PAGE = `<!doctype html><title>Inner</title><style>body { margin: 0 }
  select, textarea { position: absolute; left: 20px; width: 200px; height: 30px; } select { top: 20px } textarea { top: 70px }</style>
<select id="select" onchange="parent.postMessage('chose ' + this.value, '*')"><option>one<option>two</select>
<textarea id="text">from inside</textarea>`;

const pages = await openPages({
  '/desk': PAGE,
  '/framed': FRAMED_PAGE,
  '/pay': `<!doctype html><title>Pay</title><button autofocus onclick="heard.push('paid')">Pay</button><script>
    globalThis.heard = [];
    for (const type of ['keydown', 'keyup']) addEventListener(type, event => heard.push(type + ' ' + event.key));
  </script>`,
  '/sign-in-with': `<!doctype html><title>Sign in with</title><style>body{margin:0}button,a{position:absolute;left:20px;width:300px}
    button{top:40px;height:40px}a{top:140px;height:40px;background:#cda}</style>
    <button onclick="window.open('/provider', '', 'width=500,height=400')">Sign in with a provider</button>
    <a target="_blank" rel="noopener" href="/next">terms</a>`,
  '/provider': `<!doctype html><title>Provider</title><style>body{margin:0}input,button{position:absolute;left:20px;width:300px;height:40px}
    input{top:40px}button{top:140px}</style><input id="name"><button onclick="window.close()">Allow</button>`,
  '/iconic': '<!doctype html><title>Iconic</title><link rel="icon" href="/icon.svg">',
  '/icon.svg': (_, response) => {
    response.setHeader('content-type', 'image/svg+xml');
    response.end('<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><rect width="20" height="20"/></svg>');
  },
  '/framing': (_, response) => {
    const frameHtml = (url: string, top: number): string =>
      `<iframe src="${url}/framed" style="position:absolute;left:100px;top:${top}px;width:400px;height:200px;border:10px solid"></iframe>`;
    response.setHeader('content-type', 'text/html');
    response.end(`<!doctype html><title>Framing</title><body style="margin:0">${frameHtml('', 50)}${frameHtml(pages.b, 300)}
      <script>globalThis.heard = []; addEventListener('message', ({ data }) => heard.push(data))</script>`);
  },
});
const server = await startServer({ pages });

interface LiveViewFixture {
  readonly id: string;
  /** The page in the session. */
  readonly page: Page;
  /** The live view of the page, in a second browser. */
  readonly view: Page;
  readonly watchedPage: WatchedPage;
  readonly end: () => Promise<void>;
}

/** Opens a session and its live view in a second browser. With `mac`, the viewer is on a Mac. */
async function openSessionWithLiveView({ look = DESKTOP, mac = false } = {}): Promise<LiveViewFixture> {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await page.goto(`${pages.url}/desk`);
  const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug`);
  const watchedPage = await openWatchedPage(look, server.url);
  const view = watchedPage.page;
  if (mac) await view.addInitScript("Object.defineProperty(navigator, 'platform', { get: () => 'MacIntel' })");
  await view.goto(body.debuggerUrl);
  await eventually(
    'a frame in the live view',
    async () => Number(await view.locator('#canvas').getAttribute('width')) > 600,
  );
  const end = async (): Promise<void> => {
    assert.deepEqual(watchedPage.violations, []);
    await watchedPage.close();
    await browser.close();
    await server.release(id);
  };
  return { id, page, view, watchedPage, end };
}

/** Converts a point on the session's page to a point in the live view. */
async function pointInView(view: Page, x: number, y: number, size = { width: 1280, height: 720 }) {
  const box = await view.locator('#canvas').boundingBox();
  assert.ok(box);
  return { x: box.x + (x * box.width) / size.width, y: box.y + (y * box.height) / size.height };
}

async function click(view: Page, x: number, y: number): Promise<void> {
  const point = await pointInView(view, x, y);
  await view.mouse.click(point.x, point.y);
}

const takeControl = async (view: Page): Promise<void> => {
  await view.getByRole('button', { name: 'Take control' }).click();
  await view.getByRole('button', { name: 'Give back' }).waitFor();
};
/**
 * Presses these keys to copy. The notice about the copy disappears by itself, so the test starts to wait for the notice
 * before the keys are pressed.
 */
const copyWithKeys = async (view: Page, keys: string): Promise<void> => {
  await Promise.all([view.getByText('Copied to your clipboard.').waitFor(), view.keyboard.press(keys)]);
};
const textOf = (page: Page): Promise<string> => page.inputValue('#text');
const readEvents = (page: Page): Promise<string[]> => page.evaluate('heard');

test('the live view sends letters, symbols, arrow keys and shortcuts to the page', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await takeControl(view);
  await click(view, 200, 60);
  await view.keyboard.type('Hi. a@b, Ünïcode? (x)');
  await eventually('the text', async () => (await textOf(page)) === 'Hi. a@b, Ünïcode? (x)');
  await view.keyboard.press('ArrowLeft');
  await view.keyboard.press('Backspace');
  await view.keyboard.press('Delete');
  await view.keyboard.press('Enter');
  await view.keyboard.type('end');
  await eventually('the edited text', async () => (await textOf(page)) === 'Hi. a@b, Ünïcode? (\nend');
  for (const key of ['ArrowUp', 'Home', 'ArrowRight', 'ArrowRight']) await view.keyboard.press(key);
  await view.keyboard.type('!');
  for (const key of ['ArrowDown', 'End', 'ArrowLeft']) await view.keyboard.press(key);
  await view.keyboard.type('?');
  await eventually(
    'the text that was edited with arrow keys',
    async () => (await textOf(page)) === 'Hi!. a@b, Ünïcode? (\nen?d',
  );
  await view.keyboard.press('Control+a');
  await view.keyboard.press('Control+x');
  await eventually('the text to be cut', async () => (await textOf(page)) === '');
  await view.keyboard.press('Control+z');
  await eventually('the text to be restored by undo', async () => (await textOf(page)).startsWith('Hi!.'));
  assert.ok((await readEvents(page)).includes('cut'), 'the page gets a cut event');
  await end();
});

test('a character typed with AltGr is sent as text, not as a shortcut', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await takeControl(view);
  await click(view, 200, 60);
  const devtools = await view.context().newCDPSession(view);
  // Windows reports AltGr as Control and Alt together.
  const held = { modifiers: 1 | 2, location: 2 };
  await devtools.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', key: 'AltGraph', code: 'AltRight', ...held });
  for (const [key, code] of [
    ['@', 'KeyQ'],
    ['€', 'KeyE'],
    ['{', 'Digit7'],
  ] as const) {
    await devtools.send('Input.dispatchKeyEvent', { type: 'keyDown', key, code, text: key, modifiers: 1 | 2 });
    await devtools.send('Input.dispatchKeyEvent', { type: 'keyUp', key, code, modifiers: 1 | 2 });
  }
  await eventually('the characters typed with AltGr', async () => (await textOf(page)) === '@€{');
  await end();
});

test('the live view uses Mac shortcuts for a viewer on a Mac', async () => {
  const { page, view, end } = await openSessionWithLiveView({ mac: true });
  await takeControl(view);
  await click(view, 200, 60);
  await view.keyboard.type('apple');
  await view.keyboard.press('Meta+a');
  await copyWithKeys(view, 'Meta+c');
  await view.keyboard.press('Meta+x');
  await eventually('the text to be cut', async () => (await textOf(page)) === '');
  await view.keyboard.press('Meta+z');
  await eventually('the cut to be undone', async () => (await textOf(page)) === 'apple');
  await view.keyboard.press('ArrowRight');
  // On a Mac, this key triggers a paste event. Elsewhere it does not, so the test sends the command `paste` with the
  // key.
  const devtools = await view.context().newCDPSession(view);
  const paste = { key: 'v', code: 'KeyV', windowsVirtualKeyCode: 86, modifiers: 4, commands: ['paste'] };
  await devtools.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', ...paste });
  await eventually('the paste', async () => (await textOf(page)) === 'appleapple');
  await end();
});

test('the live view sends text from input methods and dead keys', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await takeControl(view);
  await click(view, 200, 60);
  const devtools = await view.context().newCDPSession(view);
  for (const text of ['に', 'にほ', 'にほん'])
    await devtools.send('Input.imeSetComposition', { text, selectionStart: text.length, selectionEnd: text.length });
  await devtools.send('Input.insertText', { text: '日本' });
  await eventually('the composed text', async () => (await textOf(page)) === '日本');
  assert.ok((await readEvents(page)).includes('compositionstart'));
  await devtools.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', key: 'Dead', code: 'Equal' });
  await devtools.send('Input.insertText', { text: 'é' });
  await eventually('the character with the accent', async () => (await textOf(page)) === '日本é');
  await end();
});

test("a viewer can paste ten kilobytes of text, and copy from the page to the viewer's clipboard", async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await takeControl(view);
  await click(view, 200, 60);
  const text = 'Zeile – 行 – 😀 '.repeat(700).slice(0, 10_240).trimEnd();
  await view.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
  await view.keyboard.press('Control+v');
  await eventually('the pasted text', async () => (await textOf(page)) === text);
  await page.evaluate("document.getElementById('text').value = 'copied – 行'");
  await click(view, 200, 60);
  await view.keyboard.press('Control+a');
  await copyWithKeys(view, 'Control+c');
  assert.equal(await view.evaluate('navigator.clipboard.readText()'), 'copied – 行');
  await end();
});

test('a drag and drop is completed even if the mouse moves quickly', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await takeControl(view);
  const devtools = await view.context().newCDPSession(view);
  const sendMouseEvent = (type: 'mousePressed' | 'mouseMoved' | 'mouseReleased', point: { x: number; y: number }) =>
    devtools.send('Input.dispatchMouseEvent', {
      ...{ type, ...point, button: 'left', clickCount: type === 'mouseMoved' ? 0 : 1 },
      buttons: type === 'mouseReleased' ? 0 : 1,
    });
  for (const [n, steps] of [[1], [0.2, 1], [0.01, 0.5, 1], [0.2, 0.5, 0.8, 1]].entries()) {
    await page.evaluate('heard.length = 0');
    // Each drag starts at a different point, because two presses at the same point are a double click, and the second
    // press of a double click starts no drag.
    const [from, to] = [await pointInView(view, 30 + 20 * n, 290), await pointInView(view, 400, 290)];
    await view.mouse.move(from.x, from.y);
    // The test does not wait between the events, so they arrive all at once on a busy machine.
    const press = sendMouseEvent('mousePressed', from);
    const moves = steps.map(step => sendMouseEvent('mouseMoved', { ...from, x: from.x + (to.x - from.x) * step }));
    await Promise.all([press, ...moves, sendMouseEvent('mouseReleased', to)]);
    await eventually(
      `the drop after ${steps}`,
      () => readEvents(page),
      ([drop, end]) => drop === 'drop' && end === 'dragend',
    );
  }
  await end();
});

test('a viewer can scroll, drag and drop, and touch, and sees the cursor of the page', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await takeControl(view);
  const [from, to] = [await pointInView(view, 60, 290), await pointInView(view, 400, 290)];
  await view.mouse.move(from.x, from.y);
  await view.mouse.down();
  for (const step of [0.2, 0.5, 0.8, 1])
    await view.mouse.move(from.x + (to.x - from.x) * step, from.y + (to.y - from.y) * step);
  await view.mouse.up();
  await eventually('the drop event', async () => (await readEvents(page)).includes('drop'));
  const mousePoint = await pointInView(view, 730, 50);
  await view.mouse.move(mousePoint.x, mousePoint.y);
  await eventually('the cursor of the page to be shown', async () => {
    await view.mouse.move(mousePoint.x + Math.random(), mousePoint.y);
    return (await view.locator('#canvas').evaluate(canvas => canvas.style.cursor)) === 'pointer';
  });
  await view.mouse.wheel(0, 400);
  await eventually('the page to scroll down', async () => (await page.evaluate('scrollY')) === 400);
  await view.mouse.wheel(0, -400);
  await eventually('the page to scroll back', async () => (await page.evaluate('scrollY')) === 0);
  const fingerPoint = await pointInView(view, 600, 290);
  const devtools = await view.context().newCDPSession(view);
  await devtools.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [fingerPoint] });
  await devtools.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  await eventually('the touch event', async () => (await readEvents(page)).includes('touchend'));
  await end();
});

test('a click after many mouse moves hits the correct element', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await takeControl(view);
  for (let step = 0; step < 300; step++) {
    const point = await pointInView(view, 100 + (step % 500), 400 + (step % 200));
    await view.mouse.move(point.x, point.y);
  }
  await click(view, 730, 50);
  await eventually('the click', async () => (await readEvents(page)).includes('clicked'));
  await end();
});

test('the live view shows dialogs, select lists and file choosers, and sends the answers of the viewer', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  // Without a listener, Playwright dismisses the dialog with a command. That command would be queued while a viewer has
  // control.
  page.on('dialog', () => {});
  await takeControl(view);
  await click(view, 610, 215);
  await view.getByText('Really?').waitFor();
  await view.getByRole('button', { name: 'OK' }).click();
  await view.getByText('Name?').waitFor();
  await view.getByRole('textbox', { name: 'Answer' }).fill('Anna');
  await view.getByRole('button', { name: 'OK' }).click();
  await eventually(
    'the answers to the dialogs',
    async () => JSON.stringify(await page.evaluate('answers')) === '[true,"Anna"]',
  );

  await click(view, 100, 215);
  await view.getByRole('option', { name: 'three' }).click();
  await eventually('the option to be chosen', async () => (await readEvents(page)).includes('chose three'));
  await click(view, 100, 215);
  await view.getByRole('option', { name: 'three' }).waitFor();
  await view.keyboard.press('ArrowUp');
  await view.keyboard.press('Enter');
  await eventually('the choice by keys', async () => (await readEvents(page)).includes('chose two'));

  await click(view, 340, 215);
  await view.getByText('The page is asking for a file.').waitFor();
  const chosenFiles = [
    { name: 'a b.txt', mimeType: 'text/plain', buffer: Buffer.from('first') },
    { name: 'ü.txt', mimeType: 'text/plain', buffer: Buffer.from('second') },
  ];
  await view.locator('#files-input').setInputFiles(chosenFiles);
  await view.getByRole('button', { name: 'Upload' }).click();
  const readFiles = () =>
    page.evaluate(
      `Promise.all([...document.getElementById('file').files].map(async f => f.name + '=' + await f.text()))`,
    );
  await eventually('the files', async () => JSON.stringify(await readFiles()) === '["a b.txt=first","ü.txt=second"]');
  await end();
});

test('the live view shows select lists and copies text in same-site and cross-site frames', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await page.goto(`${pages.a}/framing`);
  await takeControl(view);
  for (const [top, times] of [
    [50, 1],
    [300, 2],
  ] as const) {
    await click(view, 100 + 10 + 60, top + 10 + 35);
    const list = await view.getByRole('listbox').boundingBox();
    const pointBelow = await pointInView(view, 100 + 10 + 20, top + 10 + 50);
    assert.ok(
      list && Math.abs(list.x - pointBelow.x) < 8 && Math.abs(list.y - pointBelow.y) < 8,
      JSON.stringify({ list, below: pointBelow }),
    );
    await view.getByRole('option', { name: 'two' }).click();
    await eventually(
      'the option to be chosen',
      async () => (await readEvents(page)).filter(said => said === 'chose two').length === times,
    );
    await view.evaluate("navigator.clipboard.writeText('')");
    await click(view, 100 + 10 + 60, top + 10 + 85);
    await view.keyboard.press('Control+a');
    await view.keyboard.press('Control+c');
    const readClipboard = (): Promise<unknown> => view.evaluate('navigator.clipboard.readText()');
    await eventually('the text to be copied', async () => (await readClipboard()) === 'from inside');
  }
  await end();
});

test('the live view offers downloads only to viewers who may take control', async () => {
  const { id, page, view, end } = await openSessionWithLiveView();
  const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug?readOnly=true`);
  const readOnlyView = await view.context().newPage();
  await readOnlyView.goto(body.debuggerUrl);
  await eventually(
    'a frame in the live view',
    async () => Number(await readOnlyView.locator('#canvas').getAttribute('width')) > 600,
  );
  await page.goto(`${pages.url}/download-page`);
  await page.click('#get');
  const link = view.getByRole('link', { name: `Save ${FILE_NAME}` });
  await link.waitFor();
  const pendingDownload = view.waitForEvent('download');
  await link.click();
  const download = await pendingDownload;
  assert.equal(download.suggestedFilename(), FILE_NAME);
  assert.equal(await text(await download.createReadStream()), FILE_TEXT);
  await view.getByRole('button', { name: `Dismiss ${FILE_NAME}` }).click();
  await link.waitFor({ state: 'detached' });
  assert.equal(await readOnlyView.getByRole('link').count(), 0);
  await end();
});

test('on a small touch screen, a viewer can take control, tap the page, and type and delete with the on-screen keyboard', async () => {
  const { page, view, watchedPage, end } = await openSessionWithLiveView({ look: PHONE });
  assert.deepEqual(await watchedPage.runAxe(), []);
  assert.equal(await watchedPage.overflows(), false);
  await view.getByRole('button', { name: 'Take control' }).tap();
  await view.getByRole('button', { name: 'Give back' }).waitFor();
  const fingerPoint = await pointInView(view, 600, 290);
  await view.touchscreen.tap(fingerPoint.x, fingerPoint.y);
  await eventually('the touch event', async () => (await readEvents(page)).includes('touchend'));
  const fieldPoint = await pointInView(view, 200, 60);
  await view.touchscreen.tap(fieldPoint.x, fieldPoint.y);
  await eventually(
    'the text field to have the focus',
    async () => (await page.evaluate('document.activeElement.id')) === 'text',
  );
  await view.getByRole('button', { name: 'Keyboard' }).tap();
  assert.equal(await view.evaluate('document.activeElement.id'), 'keys');
  const devtools = await view.context().newCDPSession(view);
  await devtools.send('Input.insertText', { text: 'Grüße' });
  await eventually('the text', async () => (await textOf(page)) === 'Grüße');
  const unknown = { windowsVirtualKeyCode: 229, key: 'Unidentified', commands: ['deleteBackward'] };
  await devtools.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', ...unknown });
  await eventually('the deletion', async () => (await textOf(page)) === 'Grüß');
  assert.equal(await watchedPage.overflows(), false);
  await end();
});

for (const [name, look] of [
  ['desktop, dark mode', DESKTOP_DARK],
  ['phone, dark mode', PHONE_DARK],
] as const)
  test(`the live view has no serious accessibility findings while the viewer watches or has control: ${name}`, async () => {
    const { view, watchedPage, end } = await openSessionWithLiveView({ look });
    assert.deepEqual(await watchedPage.runAxe(), []);
    await takeControl(view);
    assert.deepEqual(await watchedPage.runAxe(), []);
    await end();
  });

test('a viewer with control can use the tabs, the address bar and the history, and a viewer without control cannot reload the page', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  const iconPage = await page.context().newPage();
  await iconPage.goto(`${pages.url}/iconic`);
  const icon = view.getByRole('listitem').filter({ hasText: 'Iconic' }).locator('img');
  await eventually('the icon to be loaded', () => icon.evaluate(image => Reflect.get(image, 'naturalWidth') === 20));
  await iconPage.close();
  const secondPage = await page.context().newPage();
  await secondPage.goto(`${pages.url}/next`);
  await view.getByRole('button', { name: 'Next', exact: true }).waitFor();
  await view.getByRole('button', { name: 'Desk', exact: true }).click();
  assert.equal(await view.getByRole('button', { name: 'Reload' }).isDisabled(), true);
  await view.getByRole('button', { name: 'Next', exact: true }).click();
  await takeControl(view);
  await view.getByRole('textbox', { name: 'Address' }).fill(`${pages.url}/`);
  await view.keyboard.press('Enter');
  await eventually('the address', () => secondPage.url() === `${pages.url}/`);
  await view.getByRole('button', { name: 'Back', exact: true }).click();
  await eventually('the previous page to be shown', () => secondPage.url() === `${pages.url}/next`);
  await view.getByRole('button', { name: 'New tab' }).click();
  await eventually('the new tab', () => page.context().pages().length === 3);
  await view.getByRole('button', { name: 'Close Next' }).click();
  await eventually('the tab to be gone', () => secondPage.isClosed());
  await end();
});

test('a click on the close button of a tab closes the tab even if the titles change while the mouse button is down', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  const secondPage = await page.context().newPage();
  await secondPage.goto(`${pages.url}/next`);
  await takeControl(view);
  const closeButton = view.getByRole('button', { name: 'Close Next' });
  await closeButton.hover();
  await view.mouse.down();
  await page.evaluate("document.title = 'A title that is much longer'; history.replaceState(null, '', '#later')");
  await view.getByRole('button', { name: 'A title that is much longer', exact: true }).waitFor();
  await view.mouse.up();
  await eventually('the tab to be gone', () => secondPage.isClosed());
  await end();
});

test('the live view shows a popup that a click opened, offers a button to go back, and shows the opener again when the popup closes', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await page.goto(`${pages.url}/sign-in-with`);
  await takeControl(view);
  const waitForTab = (name: string): Promise<void> =>
    view.locator('[aria-current="true"]').filter({ hasText: name }).waitFor();
  const popupEvent = page.waitForEvent('popup');
  await click(view, 100, 60);
  const popup = await popupEvent;
  await waitForTab('Provider');
  await view.getByText('This page was opened in a new tab.').waitFor();
  const size = { width: 500, height: 400 };
  const showsPopup = (): Promise<boolean> =>
    view
      .locator('#canvas')
      .evaluate(canvas => Number(canvas.getAttribute('width')) < 1.5 * Number(canvas.getAttribute('height')));
  await eventually('the picture of the popup', showsPopup);
  const fieldPoint = await pointInView(view, 100, 60, size);
  await view.mouse.click(fieldPoint.x, fieldPoint.y);
  await view.keyboard.type('anna');
  await eventually('the typed text in the popup', async () => (await popup.inputValue('#name')) === 'anna');

  await view.getByRole('button', { name: 'Back to “Sign in with”' }).click();
  await waitForTab('Sign in with');
  await view.getByText('This page was opened in a new tab.').waitFor({ state: 'hidden' });
  await view.getByRole('button', { name: 'Provider', exact: true }).click();
  await waitForTab('Provider');

  await eventually('the picture of the popup again', showsPopup);
  const allowPoint = await pointInView(view, 100, 160, size);
  await view.mouse.click(allowPoint.x, allowPoint.y);
  await eventually('the popup to be closed', () => popup.isClosed());
  await waitForTab('Sign in with');
  await view.getByText('The tab was closed.', { exact: false }).waitFor();
  await eventually('the picture of the opener', async () => !(await showsPopup()));

  const next = page.waitForEvent('popup');
  await click(view, 100, 160);
  await next;
  await waitForTab('Next');
  await view.getByRole('button', { name: 'New tab' }).click();
  await waitForTab('about:blank');
  await end();
});

test('a page that the agent or another viewer opens is not shown automatically', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await page.goto(`${pages.url}/sign-in-with`);
  const otherView = await view.context().newPage();
  await otherView.goto(view.url());
  await takeControl(view);
  const readShownTitle = (viewer: Page): Promise<string> => viewer.locator('[aria-current="true"]').innerText();
  await page.context().newPage();
  await view.getByRole('button', { name: 'about:blank', exact: true }).waitFor();
  assert.equal(await readShownTitle(view), 'Sign in with');
  await view.getByRole('button', { name: 'Sign in with', exact: true }).click();
  await click(view, 100, 60);
  await otherView.getByRole('button', { name: 'Provider', exact: true }).waitFor();
  assert.equal(await readShownTitle(otherView), 'Sign in with');
  await end();
});

test('Enter in the address bar opens the address, and is not sent to the page', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await page.goto(`${pages.url}/pay`);
  await takeControl(view);
  const addressBar = view.getByRole('textbox', { name: 'Address' });
  await eventually('the address of the page', async () => (await addressBar.inputValue()).endsWith('/pay'));
  await addressBar.fill(`${pages.url.replace('http://', '')}/pay#opened`);
  await view.keyboard.press('Enter');
  await eventually('the address without a scheme to be opened', () => page.url() === `${pages.url}/pay#opened`);
  await view.keyboard.press('x');
  await eventually('the next key', async () => (await readEvents(page)).length > 0);
  await eventually('the key to be released', async () => (await readEvents(page)).includes('keyup x'));
  assert.deepEqual(await readEvents(page), ['keydown x', 'keyup x']);
  await end();
});

test('Tab and Escape are sent to the page, and F6 moves the focus out of the page and releases pressed keys', async () => {
  const { page, view, end } = await openSessionWithLiveView();
  await page.goto(`${pages.url}/pay`);
  await takeControl(view);
  await view.keyboard.press('Tab');
  await view.keyboard.press('Escape');
  await view.keyboard.down('Shift');
  await eventually('the keys in the page', async () => (await readEvents(page)).includes('keydown Shift'));
  await view.getByText('Press F6 to leave the page').waitFor();
  await view.keyboard.press('F6');
  const giveBackButton = view.getByRole('button', { name: 'Give back' });
  await eventually('the focus on the button', () => giveBackButton.evaluate(button => button.matches(':focus')));
  await eventually('the release of the held key', async () => (await readEvents(page)).includes('keyup Shift'));
  assert.ok(!(await readEvents(page)).some(event => event.endsWith('F6')));
  await view.keyboard.up('Shift');
  await view.keyboard.press('Enter');
  await view.getByRole('button', { name: 'Take control' }).waitFor();
  await end();
});

test('the live view works in a sandboxed frame, and notifies the embedding page when the session ends', async () => {
  const { id, page, view } = await openSessionWithLiveView();
  const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug`);
  const embeddingPage = await view.context().newPage();
  pages.set(
    '/embedding',
    `<!doctype html><script>globalThis.told = []; addEventListener('message', ({ data }) => told.push(data))</script>
     <iframe sandbox="allow-same-origin allow-scripts" width="900" height="600" src="${body.debuggerFullscreenUrl}"></iframe>`,
  );
  await embeddingPage.goto(`${pages.url}/embedding`);
  const frame = embeddingPage.frameLocator('iframe');
  await frame.getByRole('button', { name: 'Take control' }).click();
  await frame.getByRole('button', { name: 'Give back' }).waitFor();
  assert.equal(await frame.locator('#bar').isHidden(), true);
  // Dialogs can be answered, although forms cannot be submitted in the frame.
  page.on('dialog', () => {});
  const answer = page.evaluate("prompt('Name?', 'nobody')");
  await frame.getByRole('textbox', { name: 'Answer' }).fill('Anna');
  await frame.getByRole('textbox', { name: 'Answer' }).press('Enter');
  assert.equal(await answer, 'Anna');
  await page.context().browser()?.close();
  await server.release(id);
  const hasPosted = async () => (await embeddingPage.evaluate<string[]>('told')).includes('browserbase-disconnected');
  await eventually('the message to the embedding page', hasPosted);
  // A frame that is loaded after the end of the session must post the message as well.
  await embeddingPage.reload();
  await eventually('the message to the embedding page after the end', hasPosted);
  await view.context().close();
});
