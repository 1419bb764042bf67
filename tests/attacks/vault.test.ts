// A person who can write to the database cannot read sealed data by moving it to a row of their own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import type { Context } from '../../contract/contexts.ts';
import { socketLogin } from '../../server/engines/store/embedded/is-responding.ts';
import { findPostmaster } from '../../server/engines/store/embedded/postmaster.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { startServer } from '../harness/server.ts';

const server = await startServer();

async function sql<Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
  const client = new pg.Client(socketLogin(findPostmaster(server.dataDir) ?? assert.fail('PostgreSQL is not running')));
  await client.connect();
  try {
    return (await client.query<Row>(text, [...values])).rows;
  } finally {
    await client.end();
  }
}

async function createContext(key: string, value: string): Promise<string> {
  const { body } = await server.api<Context>('POST', '/v1/browsers/contexts', { body: {}, key });
  const storageState = { cookies: [], origins: [{ origin: 'https://a.test', localStorage: [{ name: 'a', value }] }] };
  const stateResponse = await server.api('POST', `/v1/browsers/contexts/${body.id}/storage-state`, {
    body: storageState,
    key,
  });
  assert.equal(stateResponse.status, 200, stateResponse.text);
  return body.id;
}

test('sealed data stays unreadable after a context, its key or the data key of its application is moved to another application', async () => {
  const thiefKey = await createOtherApplicationKey(server);
  const victimContextId = await createContext(server.key, 'of the victim');
  const thiefContextId = await createContext(thiefKey, 'of the thief');
  const read = (id: string, key: string) => server.api('GET', `/v1/browsers/contexts/${id}/storage-state`, { key });
  const rowsBefore = await sql<{ id: string; wrapped_key: Buffer; application_id: string }>(
    'select id, wrapped_key, application_id from contexts',
  );
  const rowOf = (id: string) => rowsBefore.find(row => row.id === id) ?? assert.fail(id);
  // Copies the key of the victim's context to the thief's context, and then moves the victim's context to the thief's
  // application.
  await sql('update contexts set wrapped_key = $2 where id = $1', [thiefContextId, rowOf(victimContextId).wrapped_key]);
  assert.notEqual((await read(thiefContextId, thiefKey)).status, 200);
  await sql('update contexts set application_id = $2 where id = $1', [
    victimContextId,
    rowOf(thiefContextId).application_id,
  ]);
  assert.notEqual((await read(victimContextId, thiefKey)).status, 200);
  // Also copies the data key of the victim's application to the thief's application.
  await sql(
    `update vault_keys set wrapped = (select wrapped from vault_keys where owner = $2),
       master = (select master from vault_keys where owner = $2) where owner = $1`,
    [rowOf(thiefContextId).application_id, rowOf(victimContextId).application_id],
  );
  await server.restart();
  for (const id of [victimContextId, thiefContextId]) assert.notEqual((await read(id, thiefKey)).status, 200);
});
