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
import { type DataKeyRow, type DataKeyRows, INSTALLATION_ID } from './rows.ts';
import { rotateMasterKey, type SealBinding, Vault, type VaultParts } from './vault.ts';

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
      if (!rows.has(INSTALLATION_ID)) rows.set(INSTALLATION_ID, row);
      return rows.get(INSTALLATION_ID) ?? row;
    },
    insert: async row => {
      const isCurrent = rows.get(INSTALLATION_ID)?.master === row.master;
      if (isCurrent && !rows.has(row.owner)) rows.set(row.owner, row);
      return rows.get(row.owner);
    },
    remove: async owner => void rows.delete(owner),
    async change(work) {
      const changedRows = await work([...rows.values()]);
      if (this.failing) throw new Error('killed before the commit');
      for (const row of changedRows) rows.set(row.owner, row);
    },
  };
}

const partsOf = (rows: DataKeyRows, origin: MasterKeyOrigin): VaultParts => ({
  rows,
  masterKeys: masterKeySource(origin),
  clock: systemClock,
});

const A: SealBinding = { owner: '01a1fa50-5319-7450-a6b3-c787ada50631', kind: 'credential', id: 'one', version: 1 };
const B: SealBinding = { ...A, owner: '01a1fa50-5319-7450-a6b3-c787ada50632' };
const text = (plain: Secret<Buffer>): string => plain.reveal().toString();

test('opens a value only for the row for which it was sealed, and hides the opened value in printed output', async () => {
  const rows = memoryRows();
  const parts = partsOf(rows, { dataDir: makeFolder() });
  const vault = await Vault.open(parts);
  const sealedBytes = await vault.seal(A, Buffer.from('a secret'));
  assert.ok(!sealedBytes.includes('secret'));
  assert.notDeepEqual(sealedBytes, await vault.seal(A, Buffer.from('a secret')));
  const laterVault = await Vault.open(parts);
  const openedSecret = await laterVault.open(A, sealedBytes);
  assert.equal(text(openedSecret), 'a secret');
  assert.doesNotMatch(inspect(openedSecret) + JSON.stringify(openedSecret) + String(openedSecret), /secret/);
  for (const other of [B, { ...A, kind: 'totp' }, { ...A, id: 'two' }, { ...A, version: 2 }])
    await assert.rejects(laterVault.open(other, sealedBytes));
  for (let at = 0; at < sealedBytes.length; at += 1) {
    const alteredBytes = Buffer.from(sealedBytes);
    alteredBytes.writeUInt8(alteredBytes.readUInt8(at) ^ 1, at);
    await assert.rejects(laterVault.open(A, alteredBytes), `byte ${at}`);
  }
  await assert.rejects(laterVault.open(A, Buffer.alloc(0)));
  await assert.rejects(laterVault.seal({ ...A, id: 'one|1' }, Buffer.from('x')));
});

test('does not open a wrapped data key that was moved to another application', async () => {
  const rows = memoryRows();
  const parts = partsOf(rows, { dataDir: makeFolder() });
  const sealedBytes = await (await Vault.open(parts)).seal(A, Buffer.from('a secret'));
  const row = rows.rows.get(A.owner) ?? assert.fail('no data key');
  rows.rows.set(B.owner, { ...row, owner: B.owner });
  await assert.rejects((await Vault.open(parts)).open(B, sealedBytes));
});

test('a data key that is destroyed while its row is being read is not cached', async () => {
  const rows = memoryRows();
  const parts = partsOf(rows, { dataDir: makeFolder() });
  const sealedBytes = await (await Vault.open(parts)).seal(A, Buffer.from('a secret'));
  const vault = await Vault.open(parts);
  const gate = Promise.withResolvers<void>();
  const { get } = rows;
  rows.get = async owner => {
    const row = await get(owner);
    await gate.promise;
    return row;
  };
  const openPromise = vault.open(A, sealedBytes);
  await vault.destroy(A.owner);
  gate.resolve();
  assert.equal(text(await openPromise), 'a secret');
  await assert.rejects(vault.open(A, sealedBytes));
});

test('a data key that is read while its row is being removed cannot be used after the removal', async () => {
  const rows = memoryRows();
  const parts = partsOf(rows, { dataDir: makeFolder() });
  const sealedBytes = await (await Vault.open(parts)).seal(A, Buffer.from('a secret'));
  const vault = await Vault.open(parts);
  const gate = Promise.withResolvers<void>();
  const { remove } = rows;
  rows.remove = async owner => {
    await gate.promise;
    await remove(owner);
  };
  const destroyPromise = vault.destroy(A.owner);
  assert.equal(text(await vault.open(A, sealedBytes)), 'a secret');
  gate.resolve();
  await destroyPromise;
  await assert.rejects(vault.open(A, sealedBytes));
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
  const sealedBytes = await vaults[0]?.seal(A, Buffer.from('a secret'));
  assert.ok(sealedBytes);
  for (const vault of vaults) assert.equal(text(await vault.open(A, sealedBytes)), 'a secret');
  assert.deepEqual(readdirSync(dataDir), ['master-key']);
});

test('a rotation replaces the master key file and wraps the data key of every row again, even while a server is running', async () => {
  const dataDir = makeFolder();
  const rows = memoryRows();
  const runningVault = await Vault.open(partsOf(rows, { dataDir }));
  const sealedBytes = await runningVault.seal(A, Buffer.from('a secret'));
  const textBefore = readFileSync(join(dataDir, 'master-key'), 'utf8');
  const masterIds = () => new Set([...rows.rows.values()].map(({ master }) => master));
  const [former = ''] = masterIds();
  assert.deepEqual(await rotateMasterKey(partsOf(rows, { dataDir })), { rewrappedCount: 2 });
  assert.equal(masterIds().size, 1);
  assert.ok(!masterIds().has(former));
  const fileAfter = readFileSync(join(dataDir, 'master-key'), 'utf8');
  assert.match(fileAfter, /^[0-9a-f]{64}\n$/);
  assert.notEqual(fileAfter, textBefore);
  assert.equal(statSync(join(dataDir, 'master-key')).mode & 0o777, 0o600);
  assert.equal(text(await runningVault.open(A, sealedBytes)), 'a secret');
  // The running server has not read the new master key yet, and must not wrap data keys with the old one.
  const secondSealedBytes = await runningVault.seal(B, Buffer.from('another'));
  assert.equal(masterIds().size, 1);
  const nextVault = await Vault.open(partsOf(rows, { dataDir }));
  assert.equal(text(await nextVault.open(A, sealedBytes)), 'a secret');
  assert.equal(text(await nextVault.open(B, secondSealedBytes)), 'another');
});

test('a rotation that is interrupted before or after its commit leaves a usable key', async () => {
  const dataDir = makeFolder();
  const rows = memoryRows();
  const sealedBytes = await (await Vault.open(partsOf(rows, { dataDir }))).seal(A, Buffer.from('a secret'));
  const openValue = async () => text(await (await Vault.open(partsOf(rows, { dataDir }))).open(A, sealedBytes));
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
  const formerFile = readFileSync(join(dataDir, 'master-key'));
  for (const suffix of [crypto.randomUUID(), 'old', '2026-11-20'])
    writeFileSync(join(dataDir, `master-key.${suffix}`), formerFile, { mode: 0o600 });
  await rotateMasterKey(partsOf(rows, { dataDir }));
  assert.deepEqual(readdirSync(dataDir).sort(), ['master-key', 'master-key.2026-11-20', 'master-key.old']);
});

const KEYS = ['11'.repeat(32), Buffer.alloc(32, 2).toString('base64')] as const;
const suppliedOrigin = (...keys: string[]): MasterKeyOrigin => ({ given: new Secret(keys.join(',')) });

test('a supplied master key is rotated if the new key is listed before the current key', async () => {
  const rows = memoryRows();
  const sealedBytes = await (await Vault.open(partsOf(rows, suppliedOrigin(KEYS[0])))).seal(A, Buffer.from('a secret'));
  await assert.rejects(Vault.open(partsOf(rows, suppliedOrigin(KEYS[1]))), error => isFault(error, 'master_key_wrong'));
  await assert.rejects(rotateMasterKey(partsOf(rows, suppliedOrigin(KEYS[0]))), error =>
    isFault(error, 'master_key_unchanged'),
  );
  const both = partsOf(rows, suppliedOrigin(KEYS[1], KEYS[0]));
  assert.equal(text(await (await Vault.open(both)).open(A, sealedBytes)), 'a secret');
  await rotateMasterKey(both);
  assert.equal(text(await (await Vault.open(partsOf(rows, suppliedOrigin(KEYS[1])))).open(A, sealedBytes)), 'a secret');
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
  const sealedBytes = await vault.seal(A, Buffer.from('a secret'));
  await vault.destroy(A.owner);
  await assert.rejects(vault.open(A, sealedBytes), { message: `there is no data key for ${A.owner}` });
  assert.equal(await rows.get(A.owner), undefined);
});
