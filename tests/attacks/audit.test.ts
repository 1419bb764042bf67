// Changed or removed entries and seals of the audit log are detected. The database denies such changes to the server's
// own role, and the seals reveal changes by anybody else.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import pg from 'pg';
import type { IssuedAgentKey } from '../../contract/agent-keys.ts';
import type { Application } from '../../contract/applications.ts';
import { socketLogin } from '../../server/engines/store/embedded/is-responding.ts';
import { findPostmaster } from '../../server/engines/store/embedded/postmaster.ts';
import { sign } from '../../server/engines/vault/signing.ts';
import { Secret } from '../../server/kit/secret.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const server = await startServer({ clock: 'test', env: { BERTH_ENGINE: LIGHT_ENGINE } });
const token = await createOwnerToken(server);

interface Verdict {
  readonly ok: boolean;
  readonly unsealed: number;
  readonly problems: ReadonlyArray<{ chain: string; what: string; number: number; how: string }>;
}

/** Runs the work as the owner of the tables, with the triggers disabled. */
async function asOwner(work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client(socketLogin(findPostmaster(server.dataDir) ?? assert.fail('PostgreSQL is not running')));
  await client.connect();
  try {
    await client.query('set session_replication_role = replica');
    await work(client);
  } finally {
    await client.end();
  }
}

const sqlAsOwner = (text: string, values: readonly unknown[] = []): Promise<void> =>
  asOwner(client => client.query(text, [...values]));

async function verify(): Promise<Verdict> {
  const { code, stdout, stderr } = await server.operate('audit', 'verify', '--json');
  const verdict: Verdict = JSON.parse(stdout);
  assert.equal(code, verdict.ok ? 0 : 1, stderr);
  for (const { chain, what, number } of verdict.problems)
    assert.match(stderr, new RegExp(`${what} ${number} \\(.*${chain}`));
  return verdict;
}

const findProblem = async (chain: string): Promise<string | undefined> => {
  const found = (await verify()).problems.find(problem => problem.chain === chain);
  return found && `${found.what} ${found.number} ${found.how}`;
};

async function addEntry(application: string): Promise<void> {
  const keyResponse = await server.api<IssuedAgentKey>('POST', `/v1/applications/${application}/agent-keys`, {
    key: token,
    body: { name: 'one' },
  });
  assert.equal(keyResponse.status, 201, keyResponse.text);
}

async function waitUntilSealed(): Promise<void> {
  await eventually(
    'every entry to be sealed',
    async () => {
      await server.advance(61_000);
      return verify();
    },
    ({ ok, unsealed }) => ok && unsealed === 0,
  );
}

/**
 * Creates applications with four entries each: the first seal covers entries 1 to 3, and the second seal covers entry
 * 4.
 */
async function createApplications(count: number): Promise<readonly string[]> {
  const made = await Promise.all(
    Array.from({ length: count }, () =>
      server.api<Application>('POST', '/v1/applications', { key: token, body: { name: 'Shop' } }),
    ),
  );
  const ids = made.map(({ body }) => body.id);
  for (const id of ids) for (const _ of [2, 3]) await addEntry(id);
  await waitUntilSealed();
  for (const id of ids) await addEntry(id);
  await waitUntilSealed();
  return ids;
}

const [
  changedChain = '',
  removedChain = '',
  middleChain = '',
  lastChain = '',
  forgedChain = '',
  movedChain = '',
  unsealedChain = '',
  wholeChain = '',
] = await createApplications(8);

test('the database role of the server cannot change or remove audit entries or seals', async () => {
  for (const change of [
    `update audit_entries set action = 'other'`,
    'delete from audit_entries',
    'truncate audit_entries',
    `update audit_seals set jws = 'x'`,
    'delete from audit_seals',
    'set session_replication_role = replica',
  ])
    await asOwner(async client => {
      const { rows } = await client.query(
        `select 'berth_server_' || oid as role from pg_database where datname = current_database()`,
      );
      await client.query('reset session_replication_role');
      await client.query(`set session authorization ${rows[0].role}`);
      await assert.rejects(client.query(change), /permission denied/, change);
    });
});

test('the verification detects a changed entry and a changed seal, and reports their numbers', async () => {
  await sqlAsOwner(`update audit_entries set actor_name = 'Somebody' where chain = $1 and number = 2`, [changedChain]);
  assert.equal(await findProblem(changedChain), 'entry 2 changed');
  await sqlAsOwner(`update audit_entries set actor_name = 'Operator' where chain = $1 and number = 2`, [changedChain]);
  assert.equal(await findProblem(changedChain), undefined);
  // Changes only a digest in the row of the seal.
  await sqlAsOwner(
    `update audit_seals set row_digests[2] = decode(repeat('ab', 32), 'hex') where chain = $1 and number = 1`,
    [changedChain],
  );
  assert.equal(await findProblem(changedChain), 'seal 1 changed');
});

test('the verification reports the number of a removed entry, and also detects that another entry was given this number', async () => {
  await sqlAsOwner('delete from audit_entries where chain = $1 and number = 3', [removedChain]);
  assert.equal(await findProblem(removedChain), 'entry 3 missing');
  await sqlAsOwner('update audit_entries set number = 3 where chain = $1 and number = 4', [removedChain]);
  assert.equal(await findProblem(removedChain), 'entry 3 changed');
});

test('the verification detects the removal of a seal from the middle of a chain, and of the last seal together with its entries', async () => {
  await sqlAsOwner('delete from audit_seals where chain = $1 and number = 1', [middleChain]);
  assert.equal(await findProblem(middleChain), 'seal 1 missing');
  await asOwner(async client => {
    await client.query('delete from audit_entries where chain = $1 and number = 4', [lastChain]);
    await client.query('delete from audit_seals where chain = $1 and number = 2', [lastChain]);
  });
  assert.equal(await findProblem(lastChain), 'seal 2 missing');
  // The server continues to seal, but the new seal is not mistaken for the removed one.
  for (const _ of [4, 5]) await addEntry(lastChain);
  await server.advance(61_000);
  await eventually(
    'seal 2 to be reported as changed',
    () => findProblem(lastChain),
    problem => problem === 'seal 2 changed',
  );
});

test('the verification detects the removal of a whole chain', async () => {
  await asOwner(async client => {
    for (const table of ['audit_entries', 'audit_seals'])
      await client.query(`delete from ${table} where chain = $1`, [wholeChain]);
  });
  assert.equal(await findProblem(wholeChain), 'seal 1 missing');
});

test('the verification rejects a seal that is signed with a key of the attacker, and a seal that is copied from another chain', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const kid = 'k'.repeat(43);
  const der = privateKey.export({ format: 'der', type: 'pkcs8' });
  await asOwner(async client => {
    await client.query(
      `insert into signing_keys (kid, public_jwk, sealed, created_at, retired_at)
       select $1, $2, sealed, created_at, now() from signing_keys limit 1`,
      [kid, { ...publicKey.export({ format: 'jwk' }), kid, alg: 'EdDSA' }],
    );
    const { rows } = await client.query('select jws from audit_seals where chain = $1 and number = 2', [forgedChain]);
    const content = Buffer.from(String(rows[0].jws).split('.')[1] ?? '', 'base64url');
    const jws = await sign({ kid, privateKey: new Secret(der) }, 'berth-audit-seal+jwt', content);
    await client.query('update audit_seals set jws = $2 where chain = $1 and number = 2', [forgedChain, jws]);
    await client.query(
      `update audit_seals ours set jws = theirs.jws, row_digests = theirs.row_digests from audit_seals theirs
        where ours.chain = $1 and theirs.chain = $2 and ours.number = 1 and theirs.number = 1`,
      [movedChain, forgedChain],
    );
  });
  assert.equal(await findProblem(forgedChain), 'seal 2 changed');
  assert.equal(await findProblem(movedChain), 'seal 1 changed');
  const { text } = await server.api('GET', '/.well-known/jwks.json', { key: null });
  assert.ok(!text.includes(kid), 'a key that is not in the vault is not published');
});

test('the verification detects the removal of an entry that has not been sealed yet', async () => {
  for (const _ of [5, 6]) await addEntry(unsealedChain);
  await sqlAsOwner('delete from audit_entries where chain = $1 and number = 5', [unsealedChain]);
  assert.equal(await findProblem(unsealedChain), 'entry 5 missing');
  await server.advance(61_000);
  assert.equal(await findProblem(unsealedChain), 'entry 5 missing');
});
