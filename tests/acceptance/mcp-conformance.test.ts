// The MCP endpoint, tested with the protocol's own tools: the inspector, which must list the same operations as
// discovery, and the conformance suite for servers, for the 2025 and 2026 revisions. Both run as published and connect
// only to this machine.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { BROWSER_TOOLS, RESULT_TOOL } from '../../contract/browser-tools.ts';
import type { AgentOperationList } from '../../contract/invocations.ts';
import { openAuthorizingProxy } from '../harness/authorizing.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { agentPath, issueAgentKey } from '../harness/operations.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

const PACKAGES = join(CHECKOUT, 'node_modules/@modelcontextprotocol');
const INSPECTOR = join(PACKAGES, 'inspector/clients/launcher/build/index.js');
const CONFORMANCE = join(PACKAGES, 'conformance/dist/index.js');
const ONLY_LOOPBACK_URL = pathToFileURL(join(CHECKOUT, 'tests/harness/only-loopback.ts')).href;
const TOOL_TIMEOUT_MS = 240_000;

const home = mkdtempSync(join(tmpdir(), 'berth-mcp-tools-'));
after(() => rmSync(home, { recursive: true }));
const upstream = await openUpstream();
const server = await startServer({ env: upstream.settings });
const owner = await Owner.open(server);

/** The suite calls tools by fixed names. Two of them are published as operations here. */
const inputSchema = { type: 'object', additionalProperties: false };
const saidOperation = {
  kind: 'http',
  effect: 'read',
  inputSchema,
  binding: { method: 'GET', url: `${upstream.url}/said` },
};
await owner.publish('test_simple_text', { title: 'Say a text', description: 'Says a text.', ...saidOperation });
const brokenOperation = { ...saidOperation, binding: { method: 'GET', url: `${upstream.url}/broken` } };
await owner.publish('test_error_handling', { title: 'Fail', description: 'Fails.', ...brokenOperation });
await owner.publish('orders.cancel', cancelOrderOperation(upstream));
upstream.respondTo('/broken', (_, response) => sendJson(response, 500, {}));

const { key } = await issueAgentKey(server, {
  scopes: ['browsers:connect', 'operations:discover', 'operations:invoke'],
  grants: [{ operationId: '*', effect: 'read' }, { operationId: 'orders.cancel' }],
});
const authorization = `Bearer ${key}`;
const endpoint = new URL(`${server.url}${agentPath(server, 'mcp')}`);

/** Runs a program until it exits, with a temporary folder of this test file as its home directory. */
async function run(
  program: string,
  args: readonly string[],
): Promise<{ code: number; output: string; errors: string }> {
  const env = { PATH: process.env.PATH ?? '', HOME: home, NODE_OPTIONS: `--import=${ONLY_LOOPBACK_URL}` };
  const options = { cwd: home, env, timeout: TOOL_TIMEOUT_MS, stdio: ['ignore', 'pipe', 'pipe'] as const };
  const child: ChildProcess = spawn(process.execPath, [program, ...args], { ...options, stdio: [...options.stdio] });
  assert.ok(child.stdout && child.stderr);
  const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { code, output, errors };
}

for (const era of ['legacy', 'modern'])
  test(`the MCP inspector, set to the protocol era ${era}, lists all tools and finds no schema errors`, async () => {
    const listArgs = ['--method', 'tools/list', '--strict', '--format', 'json', '--protocol-era', era];
    const addressArgs = ['--cli', '--server-url', endpoint.href, '--transport', 'http'];
    const { code, output, errors } = await run(INSPECTOR, [
      ...addressArgs,
      ...['--header', `Authorization: ${authorization}`],
      ...listArgs,
    ]);
    assert.equal(code, 0, errors);
    const { tools }: { tools: readonly { name: string; title: string }[] } = JSON.parse(output).result;
    const { body } = await server.api<AgentOperationList>('GET', agentPath(server, 'operations?limit=100'), { key });
    assert.deepEqual(
      tools.map(({ name }) => name),
      [...Object.keys(BROWSER_TOOLS), ...body.data.map(({ id }) => id.replaceAll('.', '_')), RESULT_TOOL.name],
    );
  });

test('the MCP inspector can call a tool and print its result', async () => {
  const addressArgs = ['--cli', '--server-url', endpoint.href, '--transport', 'http'];
  const callArgs = ['--method', 'tools/call', '--tool-name', 'orders_cancel', '--tool-args-json', '{"orderId":"A-7"}'];
  const headerArgs = ['--header', `Authorization: ${authorization}`];
  const { code, output, errors } = await run(INSPECTOR, [
    ...addressArgs,
    ...headerArgs,
    ...callArgs,
    '--format',
    'json',
  ]);
  assert.equal(code, 0, errors);
  assert.match(output, /succeeded/);
  assert.equal(upstream.receivedRequests('/orders/A-7/cancel').length, 1);
});

// ---- conformance -----------------------------------------------------------------------------------------------------

const TOOLS_ONLY = 'the server offers tools, and no prompts, resources, completions or log messages';
const FIXED_TOOL =
  'the scenario calls a tool by a fixed name, whose result has content that no tool of this server returns';
const KEYWORDS_NOT_USED = 'the schemas of operations have no $anchor and no x-mcp-header';
const NO_STREAM = 'each message gets its own response, so there is no session and no stream to resume';
const NO_QUESTIONS = 'the scenario needs tools with fixed names that ask the client for input';

interface Exception {
  readonly why: string;
  /** The checks that do not apply. If absent, no check of the scenario applies. */
  readonly checks?: readonly string[];
}

const except = (why: string, ...scenarios: readonly string[]): Record<string, Exception> =>
  Object.fromEntries(scenarios.map(scenario => [scenario, { why }]));

/** Scenarios that do not apply. The test fails if one of them passes, or if another scenario fails. */
const NOT_APPLICABLE: Readonly<Record<string, Exception>> = {
  ...except(TOOLS_ONLY, 'completion-complete', 'logging-set-level', 'tools-call-with-logging'),
  ...except(TOOLS_ONLY, 'prompts-list', 'prompts-get-simple', 'prompts-get-with-args', 'prompts-get-with-image'),
  ...except(TOOLS_ONLY, 'prompts-get-embedded-resource', 'input-required-result-non-tool-request'),
  ...except(TOOLS_ONLY, 'resources-list', 'resources-read-text', 'resources-read-binary', 'resources-templates-read'),
  ...except(TOOLS_ONLY, 'resources-subscribe', 'resources-unsubscribe', 'sep-2164-resource-not-found'),
  ...except(FIXED_TOOL, 'tools-call-audio', 'tools-call-embedded-resource', 'tools-call-mixed-content'),
  ...except(FIXED_TOOL, 'tools-call-image', 'tools-call-with-progress'),
  ...except(KEYWORDS_NOT_USED, 'json-schema-2020-12', 'http-custom-header-server-validation'),
  ...except(NO_STREAM, 'server-sse-polling'),
  ...except(NO_QUESTIONS, 'tools-call-elicitation', 'tools-call-sampling'),
  ...except(NO_QUESTIONS, 'elicitation-sep1034-defaults', 'elicitation-sep1330-enums'),
  ...except(NO_QUESTIONS, 'input-required-result-basic-elicitation', 'input-required-result-basic-sampling'),
  ...except(NO_QUESTIONS, 'input-required-result-basic-list-roots', 'input-required-result-request-state'),
  ...except(NO_QUESTIONS, 'input-required-result-multiple-input-requests', 'input-required-result-multi-round'),
  ...except(NO_QUESTIONS, 'input-required-result-missing-input-response', 'input-required-result-result-type'),
  ...except(NO_QUESTIONS, 'input-required-result-tampered-state', 'input-required-result-capability-check'),
  ...except(NO_QUESTIONS, 'input-required-result-ignore-extra-params'),
  'server-sse-multiple-streams': { why: NO_STREAM, checks: ['server-sse-multiple-streams-session'] },
  caching: {
    why: TOOLS_ONLY,
    checks: ['prompts-list', 'resources-list', 'resources-templates-list', 'resources-read'].map(
      part => `sep-2549-${part}-caching-hints`,
    ),
  },
  'server-stateless': {
    why: NO_QUESTIONS,
    checks: [
      ...['server-rejects-undeclared-capability', 'missing-capability-http-400'],
      ...['http-server-no-independent-requests-on-stream', 'server-no-log-without-loglevel'],
      ...['server-sends-prompts-list-changed-on-subscription', 'server-sends-tools-list-changed-on-subscription'],
    ].map(part => `sep-2575-${part}`),
  },
};

interface Check {
  readonly id: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  readonly errorMessage?: string;
}

const SCENARIOS: readonly string[] = [
  'tools-list',
  'tools-call-simple-text',
  'tools-call-error',
  'dns-rebinding-protection',
];
const REVISIONS = {
  '2025-11-25': [...SCENARIOS, 'server-initialize', 'ping', 'server-session-lifecycle'],
  '2026-07-28': [...SCENARIOS, 'server-stateless', 'http-header-validation', 'caching'],
};

for (const [revision, expected] of Object.entries(REVISIONS))
  test(`the MCP endpoint conforms to revision ${revision} in every scenario that applies`, async () => {
    const { href } = await openAuthorizingProxy(endpoint, authorization);
    const folder = join(home, revision);
    const suiteArgs = ['server', '--url', href, '--suite', 'all', '--spec-version', revision, '--output-dir', folder];
    const { output, errors } = await run(CONFORMANCE, suiteArgs);
    const scenarioResults = readdirSync(folder).map(name => readScenarioResult(folder, name));
    const names = scenarioResults.map(({ scenario }) => scenario);
    assert.deepEqual(
      expected.filter(scenario => !names.includes(scenario)),
      [],
      `${output}\n${errors}`,
    );
    for (const { scenario, unmet } of scenarioResults) {
      const exception = NOT_APPLICABLE[scenario];
      const ids = unmet.map(({ id }) => id);
      const allowedIds = exception?.checks ?? (exception ? ids : []);
      const unexpectedChecks = unmet.filter(({ id }) => !allowedIds.includes(id));
      assert.deepEqual(unexpectedChecks, [], `${scenario} does not conform`);
      if (exception && !exception.checks) assert.ok(ids.length > 0, `${scenario} passes, so it must not be listed`);
    }
    for (const [scenario, { checks = [] }] of Object.entries(NOT_APPLICABLE))
      markNeeded(scenario, checks, scenarioResults);
  });

interface ScenarioResult {
  readonly scenario: string;
  /** The checks that did not succeed. */
  readonly unmet: readonly Check[];
}

function readScenarioResult(folder: string, name: string): ScenarioResult {
  const checks: readonly Check[] = JSON.parse(readFileSync(join(folder, name, 'checks.json'), 'utf8'));
  const unmet = checks.filter(({ status }) => status !== 'SUCCESS' && status !== 'INFO');
  return { scenario: name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, ''), unmet };
}

/** Exceptions that no revision has needed so far. The last test fails unless the set is empty. */
const unneededExceptions = new Set<string>();
for (const [scenario, { checks = [] }] of Object.entries(NOT_APPLICABLE)) {
  if (checks.length === 0) unneededExceptions.add(scenario);
  for (const check of checks) unneededExceptions.add(`${scenario} ${check}`);
}
function markNeeded(scenario: string, checks: readonly string[], scenarioResults: readonly ScenarioResult[]): void {
  const unmetChecks = scenarioResults.find(one => one.scenario === scenario)?.unmet ?? [];
  if (checks.length === 0 && unmetChecks.length > 0) unneededExceptions.delete(scenario);
  for (const { id } of unmetChecks) unneededExceptions.delete(`${scenario} ${id}`);
}

test('every exception that is listed in this file is needed for at least one protocol revision', () =>
  assert.deepEqual([...unneededExceptions], []));
