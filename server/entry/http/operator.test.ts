import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { Counter, Registry } from 'prom-client';
import { type OperatorListener, type OperatorParts, openOperator } from './operator.ts';

const metrics = new Registry();
new Counter({ name: 'told_total', help: 'Told.', registers: [metrics] }).inc();
const listeners: OperatorListener[] = [];
after(async () => {
  for (const one of listeners) await one.close();
});

async function startAndGetUrl(parts: Partial<OperatorParts> = {}): Promise<string> {
  const checkReadiness = async () => ({ ok: true, checks: [] });
  const one = await openOperator({ listen: { host: '127.0.0.1', port: 0 }, checkReadiness, metrics, ...parts });
  listeners.push(one);
  return one.url;
}

test('readiness returns 503 with the error if the checks throw', async () => {
  assert.deepEqual(await (await fetch(`${await startAndGetUrl()}/readyz`)).json(), { status: 'ready', checks: [] });
  const url = await startAndGetUrl({ checkReadiness: async () => Promise.reject(new Error('no database')) });
  const response = await fetch(`${url}/readyz`);
  const checks = [{ name: 'checks', ok: false, detail: 'no database' }];
  assert.deepEqual([response.status, await response.json()], [503, { status: 'not_ready', checks }]);
});

test('returns metrics as text, and responds with 500 if the metrics cannot be collected', async () => {
  const response = await fetch(`${await startAndGetUrl()}/metrics?x=1`);
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain/);
  assert.match(await response.text(), /^told_total 1$/m);
  const failingMetrics = { contentType: 'text/plain', metrics: async () => Promise.reject(new Error('no database')) };
  const failureResponse = await fetch(`${await startAndGetUrl({ metrics: failingMetrics })}/metrics`);
  assert.deepEqual([failureResponse.status, await failureResponse.text()], [500, 'no database\n']);
});

test('the error for an address in use names the setting BERTH_OPERATOR_LISTEN', async () => {
  const port = Number(new URL(await startAndGetUrl()).port);
  await assert.rejects(startAndGetUrl({ listen: { host: '127.0.0.1', port } }), /is in use.*BERTH_OPERATOR_LISTEN/);
});

test('close does not wait for open connections', async () => {
  const url = new URL(await startAndGetUrl());
  const idleSocket = connect(Number(url.port), url.hostname).on('error', () => {});
  await new Promise(resolve => idleSocket.once('connect', resolve));
  const ended = new Promise(resolve => idleSocket.once('close', resolve));
  await listeners.pop()?.close();
  await ended;
});
