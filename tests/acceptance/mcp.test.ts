// Agents that use MCP instead of CDP, with the official clients of the current protocol and of 2025: sessions are
// opened, driven and closed by tools.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { chromium } from 'playwright-core';
import { BROWSER_TOOLS } from '../../contract/browser-tools.ts';
import { keyWith } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { decodePng } from '../harness/png.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const pages = await openPages({
  '/shop': `<!doctype html><title>Shop</title><h1>Shop</h1>
    <label>Name <input id="name"></label><label><input type="checkbox"> Gift</label>
    <label>Size <select><option>S<option>M<option>L</select></label>
    <label>CV <input type="file" id="cv" onchange="this.files[0].text().then(text => { out.textContent = this.files[0].name + ': ' + text })"></label>
    <button onclick="out.textContent = 'Hello ' + document.querySelector('#name').value">Greet</button>
    <button onclick="out.textContent = confirm('Sure?') ? 'Yes' : 'No'">Ask</button>
    <button onclick="window.open('/next')">Open</button>
    <button onclick="console.error('out of stock'); setTimeout(() => { out.textContent = 'Late' }, 300)">Later</button>
    <p id="out"></p><iframe srcdoc="<button onclick='this.textContent=&quot;Pressed&quot;'>Inner</button>"></iframe>`,
  '/links': '<!doctype html><title>Links</title><a href="/slow">Slow</a><a href="/nothing">Nothing</a>',
  '/slow': (_, response) => void setTimeout(() => response.end('<!doctype html><title>Slow page</title>'), 700),
  '/nothing': (_, response) => void setTimeout(() => response.writeHead(204).end(), 700),
  '/red': '<!doctype html><title>Red</title><body style="background:#ff0000;margin:0">',
  '/login': (request, response) => {
    response.setHeader('set-cookie', 'who=ada; max-age=3600');
    response.setHeader('content-type', 'text/html');
    response.end(`<!doctype html><title>${request.headers.cookie ?? 'nobody'}</title>`);
  },
});
const server = await startServer({ pages, env: { BERTH_SLOTS: '4' } });
const endpoint = new URL(`${server.url}/v1/agent/applications/${server.applicationId}/mcp`);
const authorization = { authorization: `Bearer ${server.key}` };

interface Result {
  readonly text: string;
  readonly isError: boolean;
  readonly image: Buffer | undefined;
  readonly meta: Readonly<Record<string, unknown>>;
}

const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
await client.connect(new StreamableHTTPClientTransport(endpoint, { requestInit: { headers: authorization } }));

async function call(name: keyof typeof BROWSER_TOOLS, input: Record<string, unknown> = {}): Promise<Result> {
  const { content, isError, _meta } = await client.callTool({ name, arguments: input });
  const text = content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n');
  const [image] = content.flatMap(block => (block.type === 'image' ? [Buffer.from(block.data, 'base64')] : []));
  return { text, image, isError: isError === true, meta: _meta ?? {} };
}

/** Calls a tool that must succeed. */
async function done(name: keyof typeof BROWSER_TOOLS, input: Record<string, unknown> = {}): Promise<Result> {
  const result = await call(name, input);
  assert.ok(!result.isError, result.text);
  return result;
}

async function open(input: Record<string, unknown> = {}): Promise<{ sessionId: string; text: string }> {
  const { text, meta } = await done('browser_open', input);
  assert.ok(typeof meta['berth/sessionId'] === 'string');
  return { sessionId: meta['berth/sessionId'], text };
}

/** The reference of the element whose line in the snapshot has this text. */
function refOf(text: string, snapshot: string): string {
  const [, ref] = /\[ref=(\w+)\]/.exec(snapshot.split('\n').find(line => line.includes(text)) ?? '') ?? [];
  assert.ok(ref, `no ${text} in ${snapshot}`);
  return ref;
}

test('lists the tools, with a schema and hints for each', async () => {
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name),
    Object.keys(BROWSER_TOOLS),
  );
  for (const { name, description, inputSchema, annotations } of tools) {
    assert.ok(description && inputSchema.type === 'object', name);
    assert.equal(typeof annotations?.readOnlyHint, 'boolean', name);
  }
});

test('a page is read, filled in and clicked, also in a frame, and its effect is in the answer', async () => {
  const { sessionId, text } = await open({ url: `${pages.url}/shop` });
  assert.match(text, /Title: Shop/);
  const typed = await done('browser_type', { sessionId, ref: refOf('textbox "Name"', text), text: 'Ada' });
  assert.match(typed.text, /textbox "Name".*: Ada/);
  const greeted = await done('browser_click', {
    sessionId,
    ref: refOf('button "Greet"', text),
    element: 'Greet button',
  });
  assert.match(greeted.text, /Hello Ada/);
  const filled = await done('browser_fill_form', {
    sessionId,
    fields: [
      { name: 'Gift', type: 'checkbox', ref: refOf('checkbox "Gift"', text), value: 'true' },
      { name: 'Size', type: 'combobox', ref: refOf('combobox "Size"', text), value: 'M' },
    ],
  });
  assert.match(filled.text, /checkbox "Gift" \[checked\]/);
  assert.match(filled.text, /option "M" \[selected\]/);
  const inner = await done('browser_click', { sessionId, ref: refOf('button "Inner"', text) });
  assert.match(inner.text, /button "Pressed"/);
  await done('browser_close', { sessionId });
  assert.equal((await server.read(sessionId)).status, 'COMPLETED');
});

test('a click or a key that follows a link is answered with the page that it leads to, also if that is slow, and with the same page if it leads nowhere', async () => {
  const { sessionId, text } = await open({ url: `${pages.url}/links` });
  const stayed = await done('browser_click', { sessionId, ref: refOf('link "Nothing"', text) });
  assert.match(stayed.text, /Title: Links/);
  const led = await done('browser_click', { sessionId, ref: refOf('link "Slow"', stayed.text) });
  assert.match(led.text, /Title: Slow page/);
  await done('browser_navigate', { sessionId, url: `${pages.url}/links` });
  await done('browser_press_key', { sessionId, key: 'Tab' });
  const pressed = await done('browser_press_key', { sessionId, key: 'Enter' });
  assert.match(pressed.text, /Title: Slow page/);
  await done('browser_close', { sessionId });
});

test('a session that ends during a call is reported as lost by that call', async () => {
  const { sessionId } = await open({ url: `${pages.url}/red` });
  const waiting = call('browser_wait_for', { sessionId, text: 'never' });
  await server.release(sessionId);
  const { isError, text } = await waiting;
  assert.ok(isError);
  assert.match(text, /is not running: COMPLETED/);
});

test('a dialog blocks the page until it is answered, and then the click takes effect', async () => {
  const { sessionId, text } = await open({ url: `${pages.url}/shop` });
  const asked = await done('browser_click', { sessionId, ref: refOf('button "Ask"', text) });
  assert.match(asked.text, /A dialog is open \(confirm\): "Sure\?"/);
  const early = await call('browser_snapshot', { sessionId });
  assert.ok(early.isError);
  assert.match(early.text, /Answer it with browser_handle_dialog first/);
  assert.match((await done('browser_handle_dialog', { sessionId, accept: true })).text, /"Yes"/);
  await done('browser_close', { sessionId });
});

test('attaches files of the call and files that were uploaded to the session', async () => {
  const { sessionId, text } = await open({ url: `${pages.url}/shop` });
  const ref = refOf('button "CV"', text);
  const chosen = await done('browser_file_upload', {
    sessionId,
    ref,
    files: [{ name: 'a.txt', text: 'from the call' }],
  });
  assert.match(
    (await done('browser_wait_for', { sessionId, text: 'a.txt: from the call' })).text,
    /a\.txt: from the call/,
  );
  assert.ok(!chosen.isError);
  const form = new FormData();
  form.set('file', new File(['from the API'], 'b.txt'));
  const uploaded = await fetch(`${server.url}/v1/browsers/sessions/${sessionId}/uploads`, {
    method: 'POST',
    headers: authorization,
    body: form,
  });
  assert.equal(uploaded.status, 200);
  const opened = await done('browser_click', { sessionId, ref });
  assert.match(opened.text, /A file chooser is open/);
  await done('browser_file_upload', { sessionId, files: [{ name: 'b.txt' }] });
  assert.match(
    (await done('browser_wait_for', { sessionId, text: 'b.txt: from the API' })).text,
    /b\.txt: from the API/,
  );
  const missing = await call('browser_file_upload', { sessionId, ref, files: [{ name: 'c.txt' }] });
  assert.ok(missing.isError);
  await done('browser_close', { sessionId });
});

test('tabs are listed, opened, selected and closed, and a popup is one of them', async () => {
  const { sessionId, text } = await open({ url: `${pages.url}/shop` });
  await done('browser_click', { sessionId, ref: refOf('button "Open"', text) });
  const tabs = await eventually(
    'the popup',
    () => done('browser_tabs', { sessionId, action: 'list' }),
    ({ text }) => text.includes('- 1: Next'),
  );
  assert.match(tabs.text, /- 0: \(current\) Shop/);
  await done('browser_tabs', { sessionId, action: 'select', index: 1 });
  assert.match((await done('browser_snapshot', { sessionId })).text, /Title: Next/);
  const closed = await done('browser_tabs', { sessionId, action: 'close', index: 1 });
  assert.doesNotMatch(closed.text, /Next/);
  assert.match(
    (await done('browser_tabs', { sessionId, action: 'new', url: `${pages.url}/red` })).text,
    /- 1: \(current\) Red/,
  );
  assert.ok((await call('browser_tabs', { sessionId, action: 'select', index: 7 })).isError);
  await done('browser_close', { sessionId });
});

test('a screenshot is a picture of the page, and code, console, requests and history can be asked for', async () => {
  const { sessionId } = await open({ url: `${pages.url}/red`, width: 800, height: 600 });
  const { image } = await done('browser_take_screenshot', { sessionId });
  assert.ok(image);
  const { width, height, colourAt } = decodePng(image);
  assert.deepEqual([width, height, colourAt(400, 300)], [800, 600, '#ff0000']);
  assert.match((await done('browser_evaluate', { sessionId, function: '() => ({ sum: 1 + 2 })' })).text, /"sum": 3/);
  const shop = await done('browser_navigate', { sessionId, url: `${pages.url}/shop` });
  await done('browser_click', { sessionId, ref: refOf('button "Later"', shop.text) });
  await done('browser_wait_for', { sessionId, text: 'Late' });
  assert.match(
    (await done('browser_console_messages', { sessionId, onlyErrors: true })).text,
    /\[error\] out of stock/,
  );
  assert.match((await done('browser_network_requests', { sessionId })).text, /GET \S+\/shop 200/);
  assert.match((await done('browser_navigate_back', { sessionId })).text, /Title: Red/);
  assert.match((await done('browser_navigate_forward', { sessionId })).text, /Title: Shop/);
  await done('browser_resize', { sessionId, width: 500, height: 400 });
  assert.match((await done('browser_evaluate', { sessionId, function: 'innerWidth' })).text, /500/);
  const { text } = await done('browser_snapshot', { sessionId });
  for (const name of ['Greet', 'Inner']) {
    const code = '(button) => button.textContent';
    assert.match(
      (await done('browser_evaluate', { sessionId, function: code, ref: refOf(`button "${name}"`, text) })).text,
      new RegExp(name),
    );
  }
  await done('browser_close', { sessionId });
});

test('one connection drives three sessions with different contexts, and says which one a call must name', async () => {
  const { body: context } = await server.api<{ id: string }>('POST', '/v1/browsers/contexts', { body: {} });
  const first = await open({ url: `${pages.url}/login`, contextId: context.id, persist: true });
  assert.match(first.text, /Title: nobody/);
  await done('browser_close');
  const three = [
    await open({ url: `${pages.url}/login`, contextId: context.id }),
    await open({ url: `${pages.url}/login` }),
    await open({ url: `${pages.url}/red` }),
  ];
  assert.deepEqual(
    three.map(({ text }) => /Title: (.*)/.exec(text)?.[1]),
    ['who=ada', 'nobody', 'Red'],
  );
  const ambiguous = await call('browser_snapshot');
  assert.ok(ambiguous.isError);
  for (const { sessionId } of three) assert.ok(ambiguous.text.includes(sessionId));
  await Promise.all(three.map(({ sessionId }) => done('browser_close', { sessionId })));
  for (const { sessionId } of three) assert.equal((await server.read(sessionId)).status, 'COMPLETED');
});

test('a lost session is reported as lost, and never replaced by an empty one', async () => {
  const { sessionId } = await open({ url: `${pages.url}/red` });
  await server.release(sessionId);
  for (const input of [{ sessionId }, {}]) {
    const lost = await call('browser_snapshot', input);
    assert.ok(lost.isError);
    assert.match(lost.text, new RegExp(`${sessionId}, is not running: COMPLETED`));
    assert.match(lost.text, /browser_open/);
  }
  assert.equal((await done('browser_sessions')).text, 'No session is open.');
});

test('a session continues after the server was killed, and only old references are lost', async () => {
  const { sessionId, text } = await open({ url: `${pages.url}/shop` });
  await done('browser_type', { sessionId, ref: refOf('textbox "Name"', text), text: 'Ada' });
  await server.kill();
  await server.start();
  const stale = await call('browser_click', { sessionId, ref: refOf('button "Greet"', text) });
  assert.ok(stale.isError);
  assert.match(stale.text, /Take a browser_snapshot/);
  const again = await done('browser_snapshot', { sessionId });
  assert.match(again.text, /textbox "Name".*: Ada/);
  assert.match(
    (await done('browser_click', { sessionId, ref: refOf('button "Greet"', again.text) })).text,
    /Hello Ada/,
  );
  await done('browser_close', { sessionId });
});

test('hands over by a link to the live view, which is not part of the text for the model', async () => {
  const opened = await done('browser_open', { url: `${pages.url}/red` });
  const sessionId = String(opened.meta['berth/sessionId']);
  const live = String(opened.meta['berth/liveViewUrl']);
  assert.ok(live.startsWith(server.url) && !opened.text.includes(live));
  const handed = await done('browser_hand_over', { sessionId, minutes: 5 });
  const [link = ''] = /http\S+/.exec(handed.text) ?? [];
  assert.equal((await fetch(link)).status, 200);
  await done('browser_close', { sessionId });
});

test('an agent that speaks CDP works in the same browser', async () => {
  const { sessionId } = await open({ url: `${pages.url}/shop` });
  const { connectUrl } = await server.read(sessionId);
  const browser = await chromium.connectOverCDP(connectUrl ?? '');
  await browser.contexts()[0]?.pages()[0]?.fill('#name', 'Grace');
  assert.match((await done('browser_snapshot', { sessionId })).text, /Grace/);
  await browser.close();
  await done('browser_close', { sessionId });
});

test('wrong arguments and unknown tools are refused, with what was expected', async () => {
  const wrong = await call('browser_navigate', { adress: 'http://a.test' });
  assert.ok(wrong.isError);
  assert.match(wrong.text, /url/);
  const noRef = await call('browser_click', { ref: "e1' or 1=1" });
  assert.ok(noRef.isError);
  await assert.rejects(
    client.callTool({ name: 'browser_run_code', arguments: {} }),
    /There is no tool browser_run_code/,
  );
});

test('a client of the protocol of 2025 opens, reads and closes', async () => {
  const old = new OldClient({ name: 'old', version: '1' });
  await old.connect(
    new OldTransport(endpoint, { requestInit: { headers: authorization } }) as Parameters<OldClient['connect']>[0],
  );
  assert.equal((await old.listTools()).tools.length, Object.keys(BROWSER_TOOLS).length);
  const opened = await old.callTool({ name: 'browser_open', arguments: { url: `${pages.url}/red` } });
  assert.match(JSON.stringify(opened.content), /Title: Red/);
  await old.callTool({ name: 'browser_close', arguments: {} });
  await old.close();
});

test('a client that starts a program uses the tools through `berth mcp`', async () => {
  const args = [join(CHECKOUT, 'cli/berth.ts'), 'mcp', '--server', server.url, '--app', server.applicationId];
  const env = { PATH: process.env.PATH ?? '', BERTH_KEY: server.key };
  const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: 'ignore' });
  const bridged = new Client({ name: 'bridged', version: '1' });
  await bridged.connect(transport);
  assert.deepEqual(
    (await bridged.listTools()).tools.map(({ name }) => name),
    Object.keys(BROWSER_TOOLS),
  );
  const opened = await bridged.callTool({ name: 'browser_open', arguments: { url: `${pages.url}/red` } });
  assert.match(JSON.stringify(opened.content), /Title: Red/);
  assert.ok(!(await bridged.callTool({ name: 'browser_close', arguments: {} })).isError);
  await bridged.close();
});

test('`berth mcp` says at once that a key is wrong, or that the application is not known', async () => {
  const wrong = await server.berth('mcp', '--server', server.url, '--app', server.applicationId, '--key', 'bak_wrong');
  assert.equal(wrong.code, 5, wrong.stderr);
  const unknown = await server.berth('mcp', '--server', server.url, '--key', server.key);
  assert.equal(unknown.code, 2, unknown.stderr);
  assert.match(unknown.stderr, /--app/);
});

test('leaves nothing behind', async () => {
  await client.close();
  await server.settles();
});

test('a key with grants has a tool for each operation, and without browsers:connect no browser tools', async () => {
  const { key } = await keyWith(server, { grants: [{ operationId: 'browser.screenshot' }] });
  const agent = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await agent.connect(new StreamableHTTPClientTransport(endpoint, { requestInit }));
  const { tools } = await agent.listTools();
  assert.deepEqual(
    tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint]),
    [['browser_screenshot', true]],
  );
  const taken = await agent.callTool({ name: 'browser_screenshot', arguments: { url: `${pages.url}/red` } });
  const [picture] = taken.content.flatMap(block => (block.type === 'image' ? [Buffer.from(block.data, 'base64')] : []));
  assert.ok(picture);
  assert.equal(decodePng(picture).colourAt(10, 10), '#ff0000');
  const [text] = taken.content.flatMap(block => (block.type === 'text' ? [JSON.parse(block.text)] : []));
  assert.equal(text.status, 'succeeded');
  const wrong = await agent.callTool({ name: 'browser_screenshot', arguments: { url: 'ftp://x' } });
  assert.equal(wrong.isError, true);
  await assert.rejects(agent.callTool({ name: 'browser_navigate', arguments: { url: `${pages.url}/red` } }), /no tool/);
  await agent.close();
});
