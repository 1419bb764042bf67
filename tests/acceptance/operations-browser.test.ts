// Operations of the kind `browser` are configured, discovered and called with an input. The tests also cover refusals,
// retention and ambiguous outcomes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentOperationList, Invocation } from '../../contract/invocations.ts';
import type { Session } from '../../contract/sessions.ts';
import { Owner } from '../harness/configured.ts';
import { liftLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { decodePng } from '../harness/png.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

/** The fields of each submitted form. `html` is the HTML of the page, which does not contain the values of fields. */
const sent: Array<Readonly<Record<string, unknown>>> = [];
const pages = await openPages({
  '/orders/*': (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://pages.test');
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(`<!doctype html><title>Order</title><body style="margin:0;background:#0000ff">
      <h1>${decodeURIComponent(pathname).replaceAll('<', '&lt;')}</h1><p id="view">${searchParams.get('view')}</p>
      <form action="/sent"><input id="reason" name="reason"><select id="sizes" name="size" multiple>
      <option>s<option>m<option>l</select><input name="other"><input type="hidden" name="html">
      <button onclick="this.form.html.value = document.documentElement.outerHTML">Cancel</button></form>`);
  },
  '/sent': (request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://pages.test');
    const [reason, other, html] = ['reason', 'other', 'html'].map(name => searchParams.get(name));
    const sizes = searchParams.getAll('size');
    sent.push({ reason, sizes, other, html });
    const said = [reason, ...sizes].join('|');
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(
      `<!doctype html><title>Sent</title><p id="state">cancelled</p><p id="said">${said.replaceAll('<', '&lt;')}</p>`,
    );
  },
});
const server = await startServer({ pages, env: { BERTH_SLOTS: '3' } });
await liftLimits(server);
const owner = await Owner.open(server);
const { key } = await issueAgentKey(server, {
  grants: ['orders.look', 'orders.drop', 'orders.strict'].map(operationId => ({ operationId })),
});
let callCount = 0;
const call = (id: string, input: object, prefer?: string) => {
  callCount += 1;
  const headers = { 'idempotency-key': `call ${callCount}`, ...(prefer === undefined ? {} : { prefer }) };
  return invoke(server, key, id, input, { headers });
};

const lookOperation = (more: { binding?: object; [field: string]: unknown } = {}) => ({
  ...{ title: 'Look at an order', description: 'Reads an order.', kind: 'browser', effect: 'read' },
  inputSchema: {
    type: 'object',
    required: ['orderId'],
    properties: { orderId: { type: 'string' }, view: { type: 'string' } },
    additionalProperties: false,
  },
  ...more,
  binding: {
    url: `${pages.url}/orders/{orderId}?view={orderId}`,
    viewport: { width: 600, height: 400 },
    steps: [{ do: 'extract', fields: { heading: { selector: 'h1' } } }, { do: 'screenshot' }],
    ...more.binding,
  },
});

const dropOperation = (more: { [field: string]: unknown } = {}) => ({
  ...{ title: 'Cancel an order', description: 'Cancels an order.', kind: 'browser', effect: 'write' },
  inputSchema: {
    type: 'object',
    properties: { orderId: { type: 'string' }, reason: {}, sizes: {}, wait: { type: 'boolean' } },
  },
  binding: {
    steps: [
      { do: 'goto', url: `${pages.url}/orders/{orderId}` },
      { do: 'fill', selector: '#reason', value: { from: '/reason' } },
      { do: 'select', selector: '#sizes', values: { from: '/sizes' } },
      { do: 'click', selector: 'button' },
      { do: 'waitFor', selector: '#state' },
      { do: 'extract', fields: { state: { selector: '#state' } } },
      { do: 'extract', fields: { said: { selector: '#said' } } },
    ],
  },
  ...more,
});

test('an operation opens an address that is built from the input, and returns fields and a screenshot', async () => {
  const publishedOperation = await owner.publish('orders.look', lookOperation());
  assert.deepEqual([publishedOperation.kind, publishedOperation.status], ['browser', 'published']);
  const { body: list } = await server.api<AgentOperationList>('GET', agentPath(server, 'operations?kind=browser'), {
    key,
  });
  assert.deepEqual(
    list.data.map(({ id, price }) => [id, typeof price.estimate]),
    [['orders.look', 'object']],
  );
  const { body, text } = await call('orders.look', { orderId: '../A 1/<b>?x#y' });
  assert.equal(body.status, 'succeeded', text);
  const { fields, artifacts, title, results } = Object(body.output);
  assert.deepEqual([fields, title, results.length], [{ heading: '/orders/../A 1/<b>?x#y' }, 'Order', 2]);
  const png = decodePng(Buffer.from(await (await fetch(artifacts[0].downloadUrl)).arrayBuffer()));
  assert.deepEqual([png.width, png.height, png.colourAt(500, 300)], [600, 400, '#0000ff']);
  assert.equal(body.operationId, 'orders.look');
  assert.ok(body.sessionId !== undefined && body.receipt !== undefined);
  await server.waitUntilSettled();
});

test('an operation writes input values into form fields and nowhere else', async () => {
  await owner.publish('orders.drop', dropOperation());
  const reason = '"><script>document.title="x"</script>';
  sent.length = 0;
  const { body, text } = await call('orders.drop', { orderId: 'A-1', reason, sizes: ['s', 'l'] });
  assert.equal(body.status, 'succeeded', text);
  assert.deepEqual(Object(body.output).fields, { state: 'cancelled', said: `${reason}|s|l` });
  const numbersResponse = await call('orders.drop', { orderId: 'A-1', reason: 7, sizes: 'm' });
  assert.deepEqual(Object(numbersResponse.body.output).fields, { state: 'cancelled', said: '7|m' });
  // In every request, the field `other` is empty and the HTML of the page is the same.
  const rest = { other: '', html: sent[0]?.html };
  assert.match(String(rest.html), /<title>Order<\/title>/);
  assert.deepEqual(sent, [
    { reason, sizes: ['s', 'l'], ...rest },
    { reason: '7', sizes: ['m'], ...rest },
  ]);
});

test('an input with missing or invalid values for the steps is refused, and no steps are run', async () => {
  const hitsBefore = pages.hits('/orders/');
  const cases: ReadonlyArray<readonly [input: object, path: string]> = [
    [{ orderId: 'A-1', sizes: [] }, 'input.reason'],
    [{ orderId: 'A-1', reason: { a: 1 }, sizes: [] }, 'input.reason'],
    [{ orderId: 'A-1', reason: 'x'.repeat(20_001), sizes: [] }, 'input.reason'],
    [{ orderId: 'A-1', reason: 'x', sizes: [{}] }, 'input.sizes'],
    [{ orderId: 'A-1', reason: 'x', sizes: Array.from({ length: 101 }, () => 's') }, 'input.sizes'],
    [{ reason: 'x', sizes: [] }, 'input.orderId'],
    [{ orderId: '', reason: 'x', sizes: [] }, 'input.orderId'],
  ];
  for (const [input, path] of cases) {
    const { status, body, text } = await call('orders.drop', input);
    assert.deepEqual([status, body.code], [400, 'invalid_request'], text);
    assert.equal(Object(body).details.issues[0].path, path, text);
  }
  assert.equal(pages.hits('/orders/'), hitsBefore);
});

test('an operation with invalid or unsafe steps is refused, and the error names the field', async () => {
  const cases: ReadonlyArray<readonly [more: Parameters<typeof lookOperation>[0], path: string]> = [
    [{ binding: { url: 'https://{orderId}.example/' } }, 'binding.url'],
    [{ binding: { url: 'file:///etc/passwd' } }, 'binding.url'],
    [{ binding: { url: `${pages.url}/{other}` } }, 'binding.url'],
    [{ binding: { url: undefined } }, 'binding.url'],
    [{ binding: { steps: [{ do: 'goto', url: 'chrome://version' }] } }, 'binding.steps.0.url'],
    [{ binding: { steps: [{ do: 'goto', url: '{orderId}' }] } }, 'binding.steps.0.url'],
    [{ binding: { steps: [{ do: 'fill', selector: '#a' }] } }, 'binding.steps.0.value'],
    [
      { binding: { steps: [{ do: 'fill', selector: '#a', value: { from: 'orderId' } }] } },
      'binding.steps.0.value.from',
    ],
    [{ binding: { steps: [{ do: 'fill', selector: '#a', value: { from: '/none' } }] } }, 'binding.steps.0.value.from'],
    [
      { binding: { steps: [{ do: 'select', selector: '#a', values: { from: '/none' } }] } },
      'binding.steps.0.values.from',
    ],
    [{ kind: 'http' }, 'binding'],
    [{ binding: { steps: [] } }, 'binding.steps'],
  ];
  for (const [more, path] of cases) {
    const { status, body, text } = await owner.configure('orders.bad', lookOperation(more));
    assert.deepEqual([status, body.code], [400, 'invalid_request'], text);
    const issues: Array<{ path: string }> = Object(body).details.issues;
    assert.ok(
      issues.some(issue => issue.path === path),
      `${path}: ${text}`,
    );
  }
  const refusal = await owner.configure(
    'orders.look',
    { ...lookOperation(), kind: 'http', binding: { method: 'GET', url: `${pages.url}/x` } },
    '*',
  );
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], refusal.text);
});

test('a read whose output does not match the schema fails, and a write succeeds with its output marked as invalid', async () => {
  const outputSchema = {
    type: 'object',
    required: ['fields'],
    properties: { fields: { type: 'object', required: ['total'] } },
  };
  await owner.publish('orders.strict', lookOperation({ outputSchema }));
  const lookResponse = await call('orders.strict', { orderId: 'A-1' });
  assert.deepEqual(
    [lookResponse.body.status, lookResponse.body.error?.code],
    ['failed', 'output_invalid'],
    lookResponse.text,
  );
  await owner.publish('orders.drop', dropOperation({ outputSchema }));
  const dropResponse = await call('orders.drop', { orderId: 'A-1', reason: 'x', sizes: [] });
  assert.deepEqual([dropResponse.body.status, dropResponse.body.outputInvalid], ['succeeded', true], dropResponse.text);
});

test('steps cannot reach an address that is forbidden for sessions', async () => {
  await owner.publish('orders.look', lookOperation({ binding: { url: `${server.url}/{orderId}` } }));
  const { body, text } = await call('orders.look', { orderId: 'A-1' });
  assert.deepEqual([body.status, body.error?.code], ['failed', 'page_failed'], text);
});

test('if the server is killed during a write, its steps are not repeated, and its effect is reported as unknown', async () => {
  const { binding } = dropOperation();
  const steps = [...binding.steps.slice(0, 5), { do: 'sleep', ms: 10_000 }];
  await owner.publish('orders.drop', dropOperation({ binding: { steps } }));
  const hitsBefore = pages.hits('/sent');
  const { status, body } = await call('orders.drop', { orderId: 'A-1', reason: 'x', sizes: [] }, 'respond-async');
  assert.equal(status, 202);
  await eventually(
    'the form to be sent',
    () => pages.hits('/sent'),
    hits => hits === hitsBefore + 1,
  );
  // Until then, Chromium sends the request again if its connection is closed, as it is when the server is killed.
  await eventually(
    'the browser to show the response',
    async () => (await server.api<Session[]>('GET', '/v1/browsers/sessions?status=RUNNING')).body,
    sessions => sessions.some(({ lastPage }) => lastPage?.title === 'Sent'),
  );
  await server.kill('SIGKILL');
  await server.start();
  const invocation = await eventually(
    'the invocation to end',
    async () => (await server.api<Invocation>('GET', agentPath(server, `invocations/${body.id}`), { key })).body,
    one => one.status === 'ambiguous',
  );
  assert.equal(invocation.error?.code, 'upstream_ambiguous');
  assert.equal(pages.hits('/sent'), hitsBefore + 1);
  await server.waitUntilSettled();
});
