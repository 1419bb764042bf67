import assert from 'node:assert/strict';
import { test } from 'node:test';
import { masterKeySource } from '../engines/vault/master-key-source.ts';
import type { DataKeyRow } from '../engines/vault/rows.ts';
import { Vault } from '../engines/vault/vault.ts';
import { systemClock } from '../kit/clock.ts';
import type { AccountId, ApplicationId, SessionId } from '../kit/ids.ts';
import { Secret } from '../kit/secret.ts';
import { contextKeys, routeSeal, seedSeal } from './vault.ts';

// Values stored by the last version without a vault, for the context `one` and the session `session 1`.
const SECRET = new Secret('a secret of the installation, long enough');
const FORMER_KEY = '0f6ed10136470e2d60898efcc20fcb2aae49e89f0082a210c76e99416ab99c72';
const FORMER_WRAPPED_KEY =
  '01656f844c9558b4283af2f1716b3bfa4a148b38cfaa110d05437326b74ef6c108593e159882244f96c7a12a8162711caa86eb396f70d3dc4f2052a131';
const FORMER_ROUTES = 'J11OYq9QPDiV3UNr9_P8lti6MDw4O_QSDXx-a3Q7T0pdV-X5ByZhCZO6obTg9H5G';

const APPLICATION = '01a1fa50-5319-7450-a6b3-c787ada50631' as ApplicationId;
const OTHER_APPLICATION = '01a1fa50-5319-7450-a6b3-c787ada50632' as ApplicationId;

const storedRows = new Map<string, DataKeyRow>();
const add = (row: DataKeyRow): DataKeyRow =>
  storedRows.get(row.owner) ?? storedRows.set(row.owner, row).get(row.owner) ?? row;
const vault = await Vault.open({
  rows: {
    get: async owner => storedRows.get(owner),
    insertFirst: async row => add(row),
    insert: async row => add(row),
    remove: async owner => void storedRows.delete(owner),
    change: async work => void (await work([...storedRows.values()])),
  },
  masterKeys: masterKeySource({ given: new Secret('ab'.repeat(32)) }),
  clock: systemClock,
});

test('opens context keys in the former and the current format, but not for another context, for another application or with another secret', async () => {
  const keys = contextKeys(vault, SECRET);
  const context = { id: 'one', applicationId: APPLICATION };
  const formerKey = await keys.unwrap(context, Buffer.from(FORMER_WRAPPED_KEY, 'hex'));
  assert.equal(formerKey.reveal().toString('hex'), FORMER_KEY);
  const wrappedKey = await keys.wrap(context, formerKey);
  assert.deepEqual((await keys.unwrap(context, wrappedKey)).reveal(), formerKey.reveal());
  for (const otherContext of [
    { ...context, id: 'two' },
    { ...context, applicationId: OTHER_APPLICATION },
  ])
    await assert.rejects(keys.unwrap(otherContext, wrappedKey));
  await assert.rejects(
    contextKeys(vault, new Secret('x'.repeat(32))).unwrap(context, Buffer.from(FORMER_WRAPPED_KEY, 'hex')),
  );
});

test('opens proxy routes in the former and the current format, and writes the current format', async () => {
  const seal = routeSeal(vault, SECRET);
  const session = { id: 'session 1' as SessionId, applicationId: APPLICATION };
  assert.equal(await seal.open(FORMER_ROUTES, session), '[{"by":"pässword"}]');
  const sealedRoutes = await seal.close('[{"by":"pässword"}]', session);
  assert.match(sealedRoutes, /^vault:/);
  assert.equal(await seal.open(sealedRoutes, session), '[{"by":"pässword"}]');
  await assert.rejects(seal.open(sealedRoutes, { ...session, applicationId: OTHER_APPLICATION }));
});

test('opens the seed of an authenticator app only for its own account', async () => {
  const seal = seedSeal(vault);
  const sealedSeed = await seal.close('JBSWY3DPEHPK3PXP', 'ada' as AccountId);
  assert.equal(await seal.open(sealedSeed, 'ada' as AccountId), 'JBSWY3DPEHPK3PXP');
  await assert.rejects(seal.open(sealedSeed, 'bob' as AccountId));
});
