// The install id of a data folder, and the user ids derived from it.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import { firstUid, readInstallId, UIDS_PER_INSTALL } from './install.ts';

const FULL_UID_MAP = '         0          0 4294967295\n';

test('creates the install id once, with mode 0600, and rejects a malformed id', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-install-'));
  try {
    const id = readInstallId(folder);
    assert.match(id, /^[0-9a-f]{8}$/);
    assert.equal(readInstallId(folder), id);
    assert.equal(statSync(join(folder, 'install-id')).mode & 0o777, 0o600);
    writeFileSync(join(folder, 'install-id'), '../../etc');
    assert.throws(
      () => readInstallId(folder),
      error => isFault(error, 'isolation_unavailable'),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('assigns two installations separate user id ranges that start at 200000 or above', () => {
  const [one, other] = [firstUid('00000001', FULL_UID_MAP), firstUid('00000002', FULL_UID_MAP)];
  assert.ok(one !== undefined && other !== undefined && one >= 200_000 && other >= 200_000);
  assert.ok(Math.abs(one - other) >= UIDS_PER_INSTALL);
});

test('selects a user id range within the mapped ids of a small user namespace', () => {
  for (const installId of ['00000001', 'ffffffff', '12345678']) {
    const uid = firstUid(installId, '0 100000 65536');
    assert.ok(uid !== undefined && uid >= 10_000 && uid + UIDS_PER_INSTALL <= 65_536, String(uid));
  }
  assert.equal(firstUid('00000001', '0 1000 1'), undefined);
});
