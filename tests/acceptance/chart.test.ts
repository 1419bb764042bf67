// The Helm chart in deploy/chart. Helm must render it, each object must match the schemas of Kubernetes, KEDA and the
// Prometheus operator, and each setting and metric must exist in Berth. The chart is not run in a cluster.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { type KubernetesObject, runHelm, validateObjects } from '../harness/helm.ts';
import { CHECKOUT } from '../harness/server.ts';

const CHART = join(CHECKOUT, 'deploy/chart');
const ALL_EXTRAS_ARGS = ['--set', 'serviceMonitor.enabled=true', '--set', 'autoscaling.enabled=true'];

async function renderChart(...args: readonly string[]): Promise<KubernetesObject[]> {
  const { status, stdout, stderr } = await runHelm('template', 'shop', CHART, '--namespace', 'web', ...args);
  assert.equal(status, 0, stderr);
  // A disabled part of the chart is rendered as an empty document.
  return parseAllDocuments(stdout)
    .map(document => document.toJS())
    .filter(object => object !== null);
}

const allObjects = await renderChart(...ALL_EXTRAS_ARGS);
const objectOf = (kind: string): string => JSON.stringify(allObjects.find(object => object.kind === kind));

test('helm lint finds no problems in the chart', async () => {
  const { status, stdout } = await runHelm('lint', '--strict', CHART);
  assert.equal(status, 0, stdout);
});

test('every object that the chart renders matches its schema', () => {
  const said = validateObjects(allObjects);
  assert.deepEqual(
    Object.keys(said)
      .map(name => name.split(' ')[0])
      .sort(),
    [
      ...['Deployment', 'NetworkPolicy', 'NetworkPolicy', 'PodDisruptionBudget', 'PodDisruptionBudget'],
      ...['ScaledObject', 'Service', 'Service', 'Service', 'ServiceMonitor', 'StatefulSet'],
    ],
  );
  for (const [name, complaint] of Object.entries(said)) assert.equal(complaint, '', name);
  const [bad] = Object.values(
    validateObjects([
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'x' }, spec: { ports: 1 } } as KubernetesObject,
    ]),
  );
  assert.notEqual(bad, '', 'the schemas find what is wrong');
});

test('objects for KEDA and the Prometheus operator are not rendered by default', async () => {
  for (const { apiVersion } of await renderChart()) assert.doesNotMatch(apiVersion, /keda|coreos/);
});

test('browser pods run as a non-root user in a user namespace with the seccomp profile, and have no added capabilities', () => {
  const pod = objectOf('StatefulSet');
  for (const setting of [
    '"hostUsers":false',
    '"procMount":"Unmasked"',
    '"localhostProfile":"berth/seccomp.json"',
    '"drop":["ALL"]',
    '"allowPrivilegeEscalation":false',
    '"readOnlyRootFilesystem":true',
    '"runAsUser":1000',
  ])
    assert.ok(pod.includes(setting), setting);
  assert.ok(!pod.includes('"add"'), 'a capability is added');
});

test('the termination grace period of a pod is one minute longer than its drain time', async () => {
  const pod = JSON.stringify(
    (await renderChart('--set', 'browsers.drainSeconds=7200')).find(({ kind }) => kind === 'StatefulSet'),
  );
  assert.ok(pod.includes('"command":["berth-supervise","drain","7200"]'), pod);
  assert.ok(pod.includes('"terminationGracePeriodSeconds":7260'), pod);
});

test('every setting that the chart uses is documented, and every metric that the chart uses is defined by the server', () => {
  const operatingDocs = readFileSync(join(CHECKOUT, 'docs/operating.md'), 'utf8');
  const settingNames = new Set(JSON.stringify(allObjects).match(/\b(BERTH_[A-Z0-9_]+|DATABASE_URL)\b/g));
  assert.ok(settingNames.size > 5, [...settingNames].join());
  for (const name of settingNames) assert.ok(operatingDocs.includes(`| \`${name}\` |`), name);
  const metricsSource = readFileSync(join(CHECKOUT, 'server/metrics.ts'), 'utf8');
  for (const name of objectOf('ScaledObject').match(/\bberth_\w+/g) ?? [])
    assert.ok(metricsSource.includes(`'${name}'`), name);
});

test('the chart refuses an invalid setting, and the error names the setting', async () => {
  const badSettings = [
    'publicUrl=browsers.example',
    'browsers.slots=0',
    'browsers.drainSeconds=30000',
    'settings.PATH=x',
    'colour=red',
  ];
  for (const value of badSettings) {
    const { status, stderr } = await runHelm('template', 'shop', CHART, '--set', value);
    assert.notEqual(status, 0, value);
    const leaf = value.split('=')[0]?.split('.').at(-1) ?? '';
    assert.ok(stderr.includes(leaf), stderr);
  }
});
