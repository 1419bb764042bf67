import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { inspect } from 'node:util';
import { systemClock } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { Secret } from '../../kit/secret.ts';
import { type MasterKeyOrigin, masterKeySource } from './master-key-source.ts';
import { type DataKeyRow, type DataKeyRows, INSTALLATION } from './rows.ts';
import { type Place, rotateMasterKey, Vault, type VaultParts } from './vault.ts';

const folders: string[] = [];
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-vault-'));
  folders.push(folder);
  return folder;
}

/** An in-memory substitute for the table of data keys. */
function memoryRows(): DataKeyRows & { readonly rows: Map<string, DataKeyRow>; failing: boolean } {
  const rows = new Map<string, DataKeyRow>();
  return {
    rows,
    failing: false,
    get: async owner => rows.get(owner),
    insertFirst: async row => {
      if (!rows.has(INSTALLATION)) rows.set(INSTALLATION, row);
      return rows.get(INSTALLATION) ?? row;
    },
    insert: async row => {
      const isCurrent = rows.get(INSTALLATION)?.master === row.master;
      if (isCurrent && !rows.has(row.owner)) rows.set(row.owner, row);
      return rows.get(row.owner);
    },
    remove: async owner => void rows.delete(owner),
    async change(work) {
      const changed = await work([...rows.values()]);
      if (this.failing) throw new Error('killed before the commit');
      for (const row of changed) rows.set(row.owner, row);
    },
  };
}

const partsOf = (rows: DataKeyRows, origin: MasterKeyOrigin): VaultParts => ({
  rows,
  masterKeys: masterKeySource(origin),
  clock: systemClock,
});

const A: Place = { owner: '01a1fa50-5319-7450-a6b3-c787ada50631', kind: 'credential', id: 'one', version: 1 };
const B: Place = { ...A, owner: '01a1fa50-5319-7450-a6b3-c787ada50632' };
const text = (plain: Secret<Buffer>): string => plain.reveal().toString();

test('opens a value only for the row for which it was sealed, and hides the opened value in printed output', async () => {
  const rows = memoryRows();
  const parts = partsOf(rows, { dataDir: makeFolder() });
  const vault = await Vault.open(parts);
  const sealed = await vault.seal(A, Buffer.from('a secret'));
  assert.ok(!sealed.includes('secret'));
  assert.notDeepEqual(sealed, await vault.seal(A, Buffer.from('a secret')));
  const laterVault = await Vault.open(parts);
  const opened = await laterVault.open(A, sealed);
  assert.equal(text(opened), 'a secret');
  assert.doesNotMatch(inspect(opened) + JSON.stringify(opened) + String(opened), /secret/);
  for (const other of [B, { ...A, kind: 'totp' }, { ...A, id: 'two' }, { ...A, version: 2 }])
    await assert.rejects(laterVault.open(other, sealed));
  for (let at = 0; at < sealed.length; at += 1) {
    const altered = Buffer.from(sealed);
    altered.writeUInt8(altered.readUInt8(at) ^ 1, at);
    await assert.rejects(laterVault.open(A, altered), `byte ${at}`);
  }
  await assert.rejects(laterVault.open(A, Buffer.alloc(0)));
  await assert.rejects(laterVault.seal({ ...A, id: 'one|1' }, Buffer.from('x')));
});

test('does not open a wrapped data key that was moved to another application', async () => {
  const rows = memoryRows();
  const parts = partsOf(rows, { dataDir: makeFolder() });
  const sealed = await (await Vault.open(parts)).seal(A, Buffer.from('a secret'));
  const row = rows.rows.get(A.owner) ?? assert.fail('no data key');
  rows.rows.set(B.owner, { ...row, owner: B.owner });
  await assert.rejects((await Vault.open(parts)).open(B, sealed));
});

test('a data key that is destroyed while its row is being read is not cached', async () => {
  const rows = memoryRows();
  const parts = partsOf(rows, { dataDir: makeFolder() });
  const sealed = await (await Vault.open(parts)).seal(A, Buffer.from('a secret'));
  const vault = await Vault.open(parts);
  const held = Promise.withResolvers<void>();
  const { get } = rows;
  rows.get = async owner => {
    const row = await get(owner);
    await held.promise;
    return row;
  };
  const openPromise = vault.open(A, sealed);
  await vault.destroy(A.owner);
  held.resolve();
  assert.equal(text(await openPromise), 'a secret');
  await assert.rejects(vault.open(A, sealed));
});

test('a data key that is read while its row is being removed is not cached', async () => {
  const rows = memoryRows();
  const parts = partsOf(rows, { dataDir: makeFolder() });
  const sealed = await (await Vault.open(parts)).seal(A, Buffer.from('a secret'));
  const vault = await Vault.open(parts);
  const held = Promise.withResolvers<void>();
  const { remove } = rows;
  rows.remove = async owner => {
    await held.promise;
    await remove(owner);
  };
  const destroyPromise = vault.destroy(A.owner);
  assert.equal(text(await vault.open(A, sealed)), 'a secret');
  held.resolve();
  await destroyPromise;
  await assert.rejects(vault.open(A, sealed));
});

test('stores the master key in a file that only its owner can read, and refuses a file that others can read', async () => {
  const dataDir = makeFolder();
  const parts = partsOf(memoryRows(), { dataDir });
  await Vault.open(parts);
  const file = join(dataDir, 'master-key');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(dataDir), ['master-key']);
  chmodSync(file, 0o640);
  await assert.rejects(Vault.open(parts), error => isFault(error, 'master_key_unusable'));
  chmodSync(file, 0o600);
  writeFileSync(file, 'nonsense');
  await assert.rejects(Vault.open(parts), error => isFault(error, 'master_key_unusable'));
  rmSync(file);
  await assert.rejects(Vault.open(parts), error => isFault(error, 'master_key_missing'));
  assert.deepEqual(readdirSync(dataDir), [], 'no new key replaces the missing file');
});

test('processes that start at the same time use the same master key', async () => {
  const dataDir = makeFolder();
  const rows = memoryRows();
  const vaults = await Promise.all([0, 1, 2, 3].map(() => Vault.open(partsOf(rows, { dataDir }))));
  const sealed = await vaults[0]?.seal(A, Buffer.from('a secret'));
  assert.ok(sealed);
  for (const vault of vaults) assert.equal(text(await vault.open(A, sealed)), 'a secret');
  assert.deepEqual(readdirSync(dataDir), ['master-key']);
});

test('a rotation replaces the master key in the file and in every row, even while a server is running', async () => {
  const dataDir = makeFolder();
  const rows = memoryRows();
  const runningVault = await Vault.open(partsOf(rows, { dataDir }));
  const sealed = await runningVault.seal(A, Buffer.from('a secret'));
  const fileBefore = readFileSync(join(dataDir, 'master-key'), 'utf8');
  const masterIds = () => new Set([...rows.rows.values()].map(({ master }) => master));
  const [former = ''] = masterIds();
  assert.deepEqual(await rotateMasterKey(partsOf(rows, { dataDir })), { rewrappedCount: 2 });
  assert.equal(masterIds().size, 1);
  assert.ok(!masterIds().has(former));
  const now = readFileSync(join(dataDir, 'master-key'), 'utf8');
  assert.match(now, /^[0-9a-f]{64}\n$/);
  assert.notEqual(now, fileBefore);
  assert.equal(statSync(join(dataDir, 'master-key')).mode & 0o777, 0o600);
  assert.equal(text(await runningVault.open(A, sealed)), 'a secret');
  // The running server has not read the new master key yet, and must not wrap data keys with the old one.
  const secondSealed = await runningVault.seal(B, Buffer.from('another'));
  assert.equal(masterIds().size, 1);
  const next = await Vault.open(partsOf(rows, { dataDir }));
  assert.equal(text(await next.open(A, sealed)), 'a secret');
  assert.equal(text(await next.open(B, secondSealed)), 'another');
});

test('a rotation that is interrupted before or after its commit leaves a usable key', async () => {
  const dataDir = makeFolder();
  const rows = memoryRows();
  const sealed = await (await Vault.open(partsOf(rows, { dataDir }))).seal(A, Buffer.from('a secret'));
  const openValue = async () => text(await (await Vault.open(partsOf(rows, { dataDir }))).open(A, sealed));
  const countLines = () => readFileSync(join(dataDir, 'master-key'), 'utf8').trim().split('\n').length;
  rows.failing = true;
  await assert.rejects(rotateMasterKey(partsOf(rows, { dataDir })), /killed/);
  rows.failing = false;
  assert.equal(countLines(), 2);
  assert.equal(await openValue(), 'a secret');
  assert.equal(countLines(), 1, 'the key that wraps no row is removed');
  const parts = partsOf(rows, { dataDir });
  const masterKeys = masterKeySource({ dataDir });
  masterKeys.keepOnly = () => Promise.reject(new Error('killed after the commit'));
  await assert.rejects(rotateMasterKey({ ...parts, masterKeys }), /killed after/);
  assert.equal(countLines(), 2);
  assert.equal(await openValue(), 'a secret');
  assert.equal(countLines(), 1);
  assert.equal(await openValue(), 'a secret');
});

test('a rotation removes key files of a killed process, but no copies that the operator made', async () => {
  const dataDir = makeFolder();
  const rows = memoryRows();
  await Vault.open(partsOf(rows, { dataDir }));
  const former = readFileSync(join(dataDir, 'master-key'));
  for (const suffix of [crypto.randomUUID(), 'old', '2026-11-20'])
    writeFileSync(join(dataDir, `master-key.${suffix}`), former, { mode: 0o600 });
  await rotateMasterKey(partsOf(rows, { dataDir }));
  assert.deepEqual(readdirSync(dataDir).sort(), ['master-key', 'master-key.2026-11-20', 'master-key.old']);
});

const KEYS = ['11'.repeat(32), Buffer.alloc(32, 2).toString('base64')] as const;
const suppliedOrigin = (...keys: string[]): MasterKeyOrigin => ({ given: new Secret(keys.join(',')) });

test('a supplied master key is rotated if the new key is listed before the current key', async () => {
  const rows = memoryRows();
  const sealed = await (await Vault.open(partsOf(rows, suppliedOrigin(KEYS[0])))).seal(A, Buffer.from('a secret'));
  await assert.rejects(Vault.open(partsOf(rows, suppliedOrigin(KEYS[1]))), error => isFault(error, 'master_key_wrong'));
  await assert.rejects(rotateMasterKey(partsOf(rows, suppliedOrigin(KEYS[0]))), error =>
    isFault(error, 'master_key_unchanged'),
  );
  const both = partsOf(rows, suppliedOrigin(KEYS[1], KEYS[0]));
  assert.equal(text(await (await Vault.open(both)).open(A, sealed)), 'a secret');
  await rotateMasterKey(both);
  assert.equal(text(await (await Vault.open(partsOf(rows, suppliedOrigin(KEYS[1])))).open(A, sealed)), 'a secret');
});

test('reads the master key from a command, and shows neither the output nor the environment of the command in an error', async () => {
  const rows = memoryRows();
  const open = (command: string) => Vault.open(partsOf(rows, { command }));
  await open(`echo ${KEYS[0]}`);
  await open(`test -z "$BERTH_MASTER_KEY" && test -n "$HOME" && echo ${KEYS[0]}`);
  for (const command of ['exit 3', 'echo nonsense-secret', 'yes secret', `echo ${KEYS[0]}; exit 1`])
    await assert.rejects(open(command), error => {
      assert.ok(isFault(error, 'master_key_unusable'), command);
      assert.doesNotMatch(inspect(error), /nonsense-secret|yyy|1111|secret\\n/);
      return true;
    });
});

test('opening a value of an owner without a data key fails, and creates no key', async () => {
  const rows = memoryRows();
  const vault = await Vault.open(partsOf(rows, { dataDir: makeFolder() }));
  const sealed = await vault.seal(A, Buffer.from('a secret'));
  await vault.destroy(A.owner);
  await assert.rejects(vault.open(A, sealed), { message: `there is no data key for ${A.owner}` });
  assert.equal(await rows.get(A.owner), undefined);
});
