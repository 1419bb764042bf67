import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readInstallation } from './installation.ts';
import { systemClock } from './kit/clock.ts';
import { isFault } from './kit/fault.ts';
import { Secret } from './kit/secret.ts';

function makeDataFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-installation-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'data');
}

test('the host id and the secret are created once and then reused, and the secret has mode 0600', t => {
  const dataDir = makeDataFolder(t);
  const firstInstallation = readInstallation({ dataDir }, systemClock);
  const secondInstallation = readInstallation({ dataDir }, systemClock);
  assert.equal(secondInstallation.host, firstInstallation.host);
  assert.equal(secondInstallation.secret.reveal(), firstInstallation.secret.reveal());
  assert.equal(firstInstallation.secret.reveal().length, 64);
  assert.equal(statSync(join(dataDir, 'secret')).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(dataDir).sort(), ['host-id', 'secret']);
});

test('two data folders have different host ids and secrets', t => {
  const firstInstallation = readInstallation({ dataDir: makeDataFolder(t) }, systemClock);
  const otherInstallation = readInstallation({ dataDir: makeDataFolder(t) }, systemClock);
  assert.notEqual(firstInstallation.host, otherInstallation.host);
  assert.notEqual(firstInstallation.secret.reveal(), otherInstallation.secret.reveal());
});

test("uses the operator's secret, and does not write it to the data folder", t => {
  const dataDir = makeDataFolder(t);
  const secret = new Secret('x'.repeat(40));
  assert.equal(readInstallation({ dataDir, secret }, systemClock).secret, secret);
  assert.deepEqual(readdirSync(dataDir), ['host-id']);
});

test('refuses a truncated secret file, and reports its path', t => {
  const dataDir = makeDataFolder(t);
  const { secret } = readInstallation({ dataDir }, systemClock);
  writeFileSync(join(dataDir, 'secret'), secret.reveal().slice(0, 63));
  assert.throws(
    () => readInstallation({ dataDir }, systemClock),
    error => isFault(error, 'data_folder_unusable') && error.message.includes(join(dataDir, 'secret')),
  );
});

test('reports the path of a data folder that cannot be created', () => {
  for (const dataDir of ['/proc/berth-data', '/dev/null/data', '/etc/hostname'])
    assert.throws(
      () => readInstallation({ dataDir }, systemClock),
      error => isFault(error) && error.code === 'data_folder_unusable' && error.message.includes(dataDir),
    );
});
