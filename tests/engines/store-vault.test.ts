// The rows of the vault and of signing keys, on the embedded PostgreSQL and on an operator's server. One test adds data
// keys while the master key is being changed.
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { openStore, type StoreOptions } from '../../server/engines/store/open-store.ts';
import type { SigningKeyRow } from '../../server/engines/store/rows/vault.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { newKey, seal } from '../../server/engines/vault/envelope.ts';
import { masterKeySource } from '../../server/engines/vault/master-key-source.ts';
import { INSTALLATION_ID } from '../../server/engines/vault/rows.ts';
import { rotateMasterKey, Vault } from '../../server/engines/vault/vault.ts';
import { addMs, systemClock } from '../../server/kit/clock.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { makeTemporaryFolder, startForeignServer } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');

describeVault('embedded', async scope => ({ dataDir: makeTemporaryFolder(scope, 'vault') }));
describeVault('external', async scope => ({
  databaseUrl: (await startForeignServer(scope)).url,
  dataDir: makeTemporaryFolder(scope, 'vault'),
}));

function describeVault(name: string, prepare: (scope: Scope) => Promise<Omit<StoreOptions, 'log' | 'clock'>>): void {
  describe(`vault rows in the store, ${name} database`, () => {
    const scope = new Scope();
    let store: Store;
    let dataDir: string;

    before(async () => {
      const options = await prepare(scope);
      dataDir = options.dataDir;
      store = scope.own(await openStore({ ...options, log: silentLog, clock: systemClock }));
    });
    after(() => scope.close());

    const vaultOptions = () => ({ rows: store.vault, masterKeys: masterKeySource({ dataDir }), clock: systemClock });
    const placeOf = (owner: string) => ({ owner, kind: 'test', id: 'one', version: 1 });
    const readMasters = async () => {
      const seen = new Set<string>();
      await store.vault.change(async rows => {
        for (const { master } of rows) seen.add(master);
        return [];
      });
      return seen;
    };

    it('only one first row of the vault is inserted, and further rows are accepted only under the current master key', async () => {
      const row = { owner: INSTALLATION_ID, master: 'm1', wrapped: randomBytes(61), createdAt: NOW };
      assert.equal(await store.vault.get(INSTALLATION_ID), undefined);
      const firstRows = await Promise.all([row, { ...row, master: 'm2' }].map(one => store.vault.insertFirst(one)));
      assert.deepEqual(firstRows[0], firstRows[1]);
      const currentMaster = firstRows[0]?.master ?? '';
      const owner = randomUUID();
      assert.equal(await store.vault.insert({ ...row, owner, master: 'other' }), undefined);
      const made = await store.vault.insert({ ...row, owner, master: currentMaster });
      assert.deepEqual(made, { ...row, owner, master: currentMaster });
      const returnedRow = await store.vault.insert({ ...row, owner, master: currentMaster, wrapped: randomBytes(61) });
      assert.deepEqual(returnedRow, made, 'the existing row is returned');
      await store.vault.change(async rows => rows.map(one => ({ ...one, master: 'm3' })));
      assert.deepEqual(await readMasters(), new Set(['m3']));
      await assert.rejects(
        store.vault.change(async () => {
          throw new Error('no');
        }),
        /^Error: no$/,
      );
    });

    it('no data key remains wrapped by a former master key, even with concurrent writers', async () => {
      await replaceWrappedKeys();
      const vault = await Vault.open(vaultOptions());
      const owners = Array.from({ length: 40 }, () => randomUUID());
      const pendingSeals = owners.map(async (owner, index) => {
        await systemClock.sleep(index * 3);
        return vault.seal(placeOf(owner), Buffer.from(owner));
      });
      const pendingRotations = [0, 1].map(() => rotateMasterKey(vaultOptions()));
      const sealedValues = await Promise.all(pendingSeals);
      await Promise.all(pendingRotations);
      assert.equal((await readMasters()).size, 1);
      const nextVault = await Vault.open(vaultOptions());
      for (const [index, owner] of owners.entries()) {
        const openedSecret = await nextVault.open(placeOf(owner), sealedValues[index] ?? assert.fail());
        assert.equal(openedSecret.reveal().toString(), owner);
      }
    });

    /**
     * Replaces the keys in the rows of the first test, which cannot be unwrapped, with keys that are wrapped as the
     * vault wraps them.
     */
    async function replaceWrappedKeys(): Promise<void> {
      const { masterKeys } = vaultOptions();
      const [master] = await masterKeys.read({ isFirst: true });
      assert.ok(master);
      await store.vault.change(async rows =>
        rows.map(row => ({
          ...row,
          master: master.id,
          wrapped: seal(master.key, newKey().reveal(), `data key|${row.owner}|${master.id}`),
        })),
      );
    }

    it('after several rotations, exactly one signing key is active, and every retired key is kept', async () => {
      const key = (kid: string, ms = 0): SigningKeyRow => ({
        ...{ kid, publicJwk: { x: kid }, sealed: randomBytes(40), createdAt: addMs(NOW, ms) },
      });
      const { signingKeys } = store;
      assert.equal(await signingKeys.active(), undefined);
      const first = key('a');
      await signingKeys.insertFirst(first);
      await signingKeys.insertFirst(key('b'));
      assert.deepEqual(await signingKeys.active(), first);
      await Promise.all([key('c', 1), key('d', 2), key('e', 3)].map(row => signingKeys.rotate(row)));
      const all = await signingKeys.all();
      assert.deepEqual(
        all.map(({ kid }) => kid),
        ['e', 'd', 'c', 'a'],
      );
      assert.equal(all.filter(({ retiredAt }) => !retiredAt).length, 1);
    });
  });
}
