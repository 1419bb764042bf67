// `npm run bench:operations [-- --quick]`: compares an operation with the same work by hand, a tool call over MCP with
// the same work over CDP, and an HTTP operation with a direct request.
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { systemClock } from '../server/kit/clock.ts';
import { withTimeout } from '../server/kit/wait.ts';
import { PlainChromium } from '../tests/harness/by-hand.ts';
import { Owner } from '../tests/harness/configured.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { liftLimits } from '../tests/harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../tests/harness/operations.ts';
import { openPages } from '../tests/harness/pages.ts';
import { TestServer } from '../tests/harness/server.ts';
import { CdpConnection } from './cdp-connection.ts';
import { untilRefilled } from './lifecycle.ts';
import { describeMachine, readMachine } from './machine.ts';
import { type Comparison, comparisonOf } from './statistics.ts';

const BENCH_TIMEOUT_MS = 600_000;
const ROUNDS = { screenshots: 15, calls: 300, invokes: 300 };
const QUICK_ROUNDS = { screenshots: 4, calls: 50, invokes: 50 };
const VIEWPORT = { width: 1280, height: 720 };
const EXPRESSION = '1 + 1';
const NEXT_FRAME = 'new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))';

const pages = await openPages({
  '/page': `<!doctype html><title>Page</title><h1>A page</h1>${'<p>Some text of this page.</p>'.repeat(30)}`,
});
const server = new TestServer({ env: { BERTH_WARM: undefined }, isMeasured: true, pages }, await claimFreePort());
const url = `${pages.url}/page`;

async function measureMs(work: () => Promise<unknown>): Promise<number> {
  const startMs = systemClock.monotonicMs();
  await work();
  return systemClock.monotonicMs() - startMs;
}

/**
 * Measures from the start of the browser to the image. As with a session, the time to end the browser is not measured.
 */
async function captureByHand(): Promise<number> {
  const startMs = systemClock.monotonicMs();
  const browser = await PlainChromium.start();
  const connection = await CdpConnection.open(browser.url);
  const page = await connection.attachToPage();
  const metrics = { ...VIEWPORT, deviceScaleFactor: 1, mobile: false };
  await connection.send('Emulation.setDeviceMetricsOverride', metrics, page);
  await connection.visit(url, page);
  const { data } = await connection.send('Page.captureScreenshot', { format: 'png' }, page);
  const durationMs = systemClock.monotonicMs() - startMs;
  if (typeof data !== 'string' || data === '') throw new Error('Page.captureScreenshot returned no image');
  connection.close();
  await browser.close();
  return durationMs;
}

/** Invokes the operation, which also creates a receipt, and downloads the image. */
async function captureByOperation(key: string): Promise<void> {
  const { status, body, text } = await invoke(server, key, 'browser.screenshot', { url, viewport: VIEWPORT });
  if (status !== 200 || body.status !== 'succeeded') throw new Error(text);
  const imageResponse = await fetch(Object(body.output).artifact.downloadUrl);
  if (!imageResponse.ok || (await imageResponse.arrayBuffer()).byteLength === 0)
    throw new Error(`the artifact could not be downloaded: status ${imageResponse.status}`);
}

async function measureScreenshots(key: string, rounds: number): Promise<Comparison> {
  const [byHandTimes, ourTimes]: [number[], number[]] = [[], []];
  await captureByHand();
  await captureByOperation(key);
  for (let round = 0; round < rounds; round += 1) {
    byHandTimes.push(await captureByHand());
    await untilRefilled(server);
    ourTimes.push(await measureMs(() => captureByOperation(key)));
  }
  return comparisonOf(byHandTimes, ourTimes);
}

/**
 * Compares two ways to evaluate an expression in a page of a session: an MCP tool call, and the session's CDP socket.
 * The tool also waits until the page has drawn, and reads its title, so the CDP side does the same.
 */
async function measureCalls(rounds: number): Promise<Comparison> {
  const requestHeaders = { authorization: `Bearer ${server.key}` };
  const client = new Client({ name: 'bench', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  const endpoint = new URL(`${server.url}${agentPath(server, 'mcp')}`);
  await client.connect(new StreamableHTTPClientTransport(endpoint, { requestInit: { headers: requestHeaders } }));
  const session = await server.createSession({});
  const connection = await CdpConnection.open(session.connectUrl);
  const page = await connection.attachToPage();
  await connection.visit(url, page);
  const evaluateOverCdp = async (): Promise<void> => {
    await connection.evaluate(EXPRESSION, page);
    await connection.send('Runtime.evaluate', { expression: NEXT_FRAME, awaitPromise: true }, page);
    await connection.evaluate('document.title', page);
  };
  const evaluateOverMcp = async (): Promise<void> => {
    const { isError, content } = await client.callTool({
      name: 'browser_evaluate',
      arguments: { sessionId: session.id, function: `() => ${EXPRESSION}` },
    });
    if (isError === true) throw new Error(JSON.stringify(content));
  };
  for (let round = 0; round < rounds / 10; round += 1) await evaluateOverMcp();
  const [cdpTimes, mcpTimes]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    cdpTimes.push(await measureMs(evaluateOverCdp));
    mcpTimes.push(await measureMs(evaluateOverMcp));
  }
  connection.close();
  await client.close();
  await server.release(session.id);
  return comparisonOf(cdpTimes, mcpTimes);
}

/**
 * Compares calls of a read operation, which puts one member of the input into its URL, with the same GET by `fetch`.
 */
async function measureInvokes(rounds: number): Promise<Comparison> {
  const owner = await Owner.open(server);
  await owner.publish('bench.read', {
    ...{ title: 'Read', description: 'Reads a page.', kind: 'http', effect: 'read' },
    inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
    binding: { method: 'GET', url: `${url}?id={id}` },
  });
  const { key } = await issueAgentKey(server);
  const callDirectly = async (): Promise<void> => {
    const response = await fetch(`${url}?id=a`);
    if (!response.ok || (await response.text()) === '') throw new Error(`the page responded with ${response.status}`);
  };
  const invokeRead = async (): Promise<void> => {
    const { status, body, text } = await invoke(server, key, 'bench.read', { id: 'a' });
    if (status !== 200 || body.status !== 'succeeded') throw new Error(text);
  };
  for (let round = 0; round < rounds / 5; round += 1) await invokeRead();
  const [directMs, invokedMs]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    directMs.push(await measureMs(callDirectly));
    invokedMs.push(await measureMs(invokeRead));
  }
  return comparisonOf(directMs, invokedMs);
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
const formatSpread = (values: { median: number; min: number; max: number }): string =>
  `${values.median.toFixed(2)} (${values.min.toFixed(2)}–${values.max.toFixed(2)})`;

async function measure(rounds: typeof ROUNDS): Promise<void> {
  await server.start();
  await liftLimits(server);
  const { key } = await issueAgentKey(server);
  const screenshotComparison = await measureScreenshots(key, rounds.screenshots);
  const callComparison = await measureCalls(rounds.calls);
  const invokeComparison = await measureInvokes(rounds.invokes);
  const addedMs = callComparison.ours.median - callComparison.base.median;
  process.stdout.write(`Measured on: ${describeMachine(await readMachine())}.\n\n`);
  process.stdout.write(row(['ms, median', 'by hand', 'Berth', 'compared', 'asked for']));
  process.stdout.write(row(['---', '---:', '---:', '---:', '---:']));
  const [hand, ours] = [screenshotComparison.base.median.toFixed(0), screenshotComparison.ours.median.toFixed(0)];
  process.stdout.write(
    row(['screenshot of an address', hand, ours, `ratio ${formatSpread(screenshotComparison.ratio)}`, '≤ 0.5']),
  );
  const [cdp, mcp] = [callComparison.base.median.toFixed(2), callComparison.ours.median.toFixed(2)];
  process.stdout.write(
    row(['tool call over MCP beside CDP', cdp, mcp, `${addedMs.toFixed(2)} ms more`, '≤ 5 ms more']),
  );
  const [directMedian, invokedMedian] = [invokeComparison.base.median, invokeComparison.ours.median];
  const differenceText = `${(invokedMedian - directMedian).toFixed(2)} ms more`;
  process.stdout.write(
    row(['http invoke on loopback', directMedian.toFixed(2), invokedMedian.toFixed(2), differenceText, '≤ 8 ms more']),
  );
}

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
try {
  await withTimeout(BENCH_TIMEOUT_MS, 'the bench of operations', () => measure(values.quick ? QUICK_ROUNDS : ROUNDS));
} finally {
  await server.close();
}
process.exit();
