// Neither the database nor the server's log contains a credential in clear text. An e-mail that is not sent yet
// contains its code or link (docs/security.md), so the table of e-mails is not read.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DebugUrls } from '../../contract/live.ts';
import { CdpClient } from '../harness/cdp.ts';
import { ConsumerFixture } from '../harness/consumers.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { acceptInvitation, invite, register } from '../harness/members.ts';
import { issueAgentKey } from '../harness/operations.ts';
import { queryRows, readDatabaseText } from '../harness/other-person.ts';
import { createSetUpToken, PASSWORD, Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const server = await startServer({ clock: 'test', env: { BERTH_ENGINE: LIGHT_ENGINE } });
const owner = await Person.setUpOwner(server);

/** Uses each kind of credential. Returns the secret of each, by its name. */
async function useCredentials(): Promise<Readonly<Record<string, string>>> {
  const { key } = await issueAgentKey(server, { scopes: ['browsers:read', 'browsers:write', 'browsers:connect'] });
  const { token }: { token: string } = JSON.parse((await server.operate('tokens', 'create', '--json')).stdout);
  assert.equal((await server.api('GET', '/v1/applications', { key: token })).status, 200);
  const invitation = await invite(server, owner, 'eve@example.com', 'viewer');
  const member = await register(server, invitation, 'eve@example.com');
  await acceptInvitation(member, invitation);
  const lab = await ConsumerFixture.open(server, owner);
  const { accessToken, refreshToken } = await lab.signIn('kim@example.com');
  return {
    ...{ key, token, invitation: invitation.secret, accessToken, refreshToken },
    ...{ setUpToken: await createSetUpToken(server), password: PASSWORD },
    ownerCookie: valueIn(owner.cookie),
    memberCookie: valueIn(member.cookie),
    ...(await useAddresses(key)),
  };
}

/** Opens the addresses of a session, each of which contains a secret. */
async function useAddresses(key: string): Promise<Readonly<Record<string, string>>> {
  const session = await server.createSession({ keepAlive: true }, key);
  const client = await CdpClient.connect(session.connectUrl);
  const path = `/v1/browsers/sessions/${session.id}/debug`;
  const { body: urls } = await server.api<DebugUrls>('GET', path, { key });
  const viewer = await LiveViewer.open(urls.debuggerUrl);
  await eventually('a picture', () => viewer.frameCount > 0);
  await viewer.close();
  await client.close();
  await server.release(session.id);
  const [page] = urls.pages;
  return {
    signingKey: secretIn(session.connectUrl),
    liveView: secretIn(urls.debuggerUrl),
    ...(page?.devtoolsUrl ? { devtools: secretIn(page.devtoolsUrl) } : {}),
  };
}

const valueIn = (cookie: string | undefined): string => cookie?.split('=')[1] ?? assert.fail('there is no cookie');

/** Returns the secret of the address: its longest part that is not an id. */
function secretIn(address: string): string {
  const { pathname, search } = new URL(address);
  const parts = `${pathname}${search}`.split(/[/?&=.]/).filter(part => !/^[0-9a-f-]{36}$/.test(part));
  const longest = parts.toSorted((one, other) => other.length - one.length)[0] ?? '';
  assert.ok(longest.length >= 20, address);
  return longest;
}

test('no credential is in clear text in the server log, or in the database outside the stored e-mails', async () => {
  const secrets = await useCredentials();
  const tableQuery =
    "select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'";
  const tables = (await queryRows(server, tableQuery)).map(row => String(Object(row).name));
  assert.ok(tables.includes('keys') && tables.includes('mails'), String(tables));
  const mails = await readDatabaseText(server, ['mails']);
  assert.ok(mails.includes(secrets.invitation ?? assert.fail()), 'the search finds what is stored');
  for (const table of tables.filter(name => name !== 'mails')) {
    const text = await readDatabaseText(server, [table]);
    for (const [name, secret] of Object.entries(secrets)) assert.ok(!text.includes(secret), `${name} is in ${table}`);
  }
  const log = server.log().join('\n');
  assert.ok(log.includes('session.ended'));
  for (const [name, secret] of Object.entries(secrets)) assert.ok(!log.includes(secret), `${name} is in the log`);
});
