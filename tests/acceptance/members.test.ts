// Members and invitations of an application, tested with the API calls that the console makes.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { AuditPage } from '../../contract/audit.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { Invitation, InvitationPage, IssuedInvitation } from '../../contract/invitations.ts';
import type { Member, MemberPage } from '../../contract/members.ts';
import type { IssuedToken } from '../../contract/tokens.ts';
import { createOwnerToken } from '../harness/limits.ts';
import {
  acceptInvitation,
  invite,
  type JoinedMember,
  joinApplication,
  readRoles,
  register,
  stepUp,
  verifyEmail,
} from '../harness/members.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';

const HOUR_MS = 3_600_000;
const server = await startServer({ clock: 'test' });
const APPLICATION = `/v1/applications/${server.applicationId}`;
const MEMBERS = `${APPLICATION}/members`;
const INVITATIONS = `${APPLICATION}/invitations`;
let ada: Person;
let grace: JoinedMember;

before(async () => {
  ada = await Person.setUpOwner(server);
});

const codeOf = (result: { readonly body: unknown }): string => (result.body as ErrorBody).code;

const listInvitations = async (): Promise<readonly Invitation[]> =>
  (await ada.get<InvitationPage>(`${INVITATIONS}?limit=100`)).body.data;

const readStatus = async (id: string): Promise<string | undefined> =>
  (await listInvitations()).find(one => one.id === id)?.status;

test('an invitation is e-mailed and shown once, and a person who registers and accepts the invitation becomes a member', async () => {
  const email = 'grace@example.com';
  const invitationResponse = await ada.post<IssuedInvitation>(INVITATIONS, {
    email: ' Grace@Example.com ',
    role: 'developer',
  });
  assert.equal(invitationResponse.status, 201, invitationResponse.text);
  const { id, acceptUrl, role, status, expiresAt, createdAt } = invitationResponse.body;
  assert.deepEqual([invitationResponse.body.email, role, status], [email, 'developer', 'pending']);
  assert.equal(Date.parse(expiresAt) - Date.parse(createdAt), 7 * 24 * HOUR_MS);
  assert.match(acceptUrl, new RegExp(`^${server.url}/console/invitation#biv_[A-Za-z0-9_-]{49}$`));
  const { stdout } = await server.operate('outbox', '--json');
  const mail = JSON.parse(stdout).find(({ to }: { to: string }) => to === email);
  assert.match(mail.subject, /^Invitation to Default$/);
  assert.ok(mail.text.includes(acceptUrl) && mail.text.startsWith('Ada invites you'));
  const listResponse = await ada.get<InvitationPage>(INVITATIONS);
  assert.ok(!listResponse.text.includes('biv_'));
  assert.equal(listResponse.body.data[0]?.id, id);

  const invitation = { id, secret: new URL(acceptUrl).hash.slice(1) };
  const person = await register(server, invitation, email);
  const unverifiedResponse = await acceptInvitation(person, invitation);
  assert.deepEqual([unverifiedResponse.status, unverifiedResponse.body.code], [404, 'not_found']);
  await verifyEmail(server, person, email);
  const acceptResponse = await acceptInvitation(person, invitation);
  assert.deepEqual(acceptResponse.body, { applicationId: server.applicationId, role: 'developer' });
  assert.equal(await readStatus(id), 'accepted');
  assert.equal((await person.get(APPLICATION)).status, 200);
  const { data } = (await ada.get<MemberPage>(MEMBERS)).body;
  const [newest, oldest] = data;
  assert.ok(newest?.lastActiveAt);
  assert.deepEqual([newest.name, newest.email, newest.role], ['grace', email, 'developer']);
  assert.deepEqual([oldest?.name, oldest?.role, data.length], ['Ada', 'owner', 2]);
  grace = { person, accountId: newest.accountId };
});

test('accepting an invitation in two tabs at the same time succeeds only once', async () => {
  const email = 'tabs@example.com';
  const invitation = await invite(server, ada, email, 'viewer');
  const person = await register(server, invitation, email);
  await verifyEmail(server, person, email);
  const responses = await Promise.all([acceptInvitation(person, invitation), acceptInvitation(person, invitation)]);
  assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 404]);
  const { data } = (await ada.get<MemberPage>(MEMBERS)).body;
  assert.equal(data.filter(member => member.email === email).length, 1);
  const leaveResponse = await person.send('DELETE', `${MEMBERS}/${data[0]?.accountId}`);
  assert.equal(leaveResponse.status, 204, leaveResponse.text);
});

test('an invitation can raise the role of a member, but cannot lower the role', async () => {
  const lowerRoleResponse = await acceptInvitation(
    grace.person,
    await invite(server, ada, 'grace@example.com', 'viewer'),
  );
  assert.equal(lowerRoleResponse.body.role, 'developer');
  const higherRoleResponse = await acceptInvitation(
    grace.person,
    await invite(server, ada, 'grace@example.com', 'admin'),
  );
  assert.equal(higherRoleResponse.body.role, 'admin');
});

test('a role change takes effect immediately, and only admins and owners see e-mail addresses', async () => {
  const path = `${MEMBERS}/${grace.accountId}`;
  const readEmails = async () => (await grace.person.get<MemberPage>(MEMBERS)).body.data.map(({ email }) => email);
  assert.deepEqual(await readEmails(), ['grace@example.com', 'ada@example.com']);
  const patchResponse = await ada.send<Member>('PATCH', path, { role: 'developer' });
  assert.deepEqual([patchResponse.status, patchResponse.body.role], [200, 'developer']);
  assert.deepEqual(await readEmails(), [undefined, undefined]);
  assert.equal((await grace.person.post(INVITATIONS, { email: 'a@example.com', role: 'viewer' })).status, 403);
  assert.equal((await grace.person.post(`${APPLICATION}/agent-keys`, { name: 'mine' })).status, 201);
  assert.equal((await ada.send('PATCH', path, { role: 'viewer' })).status, 200);
  assert.equal((await grace.person.post(`${APPLICATION}/agent-keys`, { name: 'mine' })).status, 403);
});

test('a member who leaves or is removed loses access immediately, including access by tokens', async () => {
  const { person, accountId } = await joinApplication(server, ada, 'linus@example.com', 'developer');
  await stepUp(person);
  const tokenBody = { name: 'mine', scopes: ['applications:read'] };
  const token = (await person.post<IssuedToken>('/v1/account/tokens', tokenBody)).body.token;
  const restrictedBody = { ...tokenBody, applicationIds: [server.applicationId] };
  const restrictedToken = (await person.post<IssuedToken>('/v1/account/tokens', restrictedBody)).body.token;
  const readStatuses = () =>
    Promise.all([token, restrictedToken].map(async key => (await server.api('GET', APPLICATION, { key })).status));
  assert.deepEqual(await readStatuses(), [200, 200]);
  assert.equal((await person.send('DELETE', `${MEMBERS}/${accountId}`)).status, 204);
  assert.deepEqual(await readStatuses(), [404, 404]);
  assert.equal((await person.get(APPLICATION)).status, 404);
  const acceptResponse = await acceptInvitation(person, await invite(server, ada, 'linus@example.com', 'viewer'));
  assert.equal(acceptResponse.status, 200);
  assert.deepEqual(await readStatuses(), [200, 200]);
  assert.equal((await ada.send('DELETE', `${MEMBERS}/${accountId}`)).status, 204);
  assert.deepEqual(await readStatuses(), [404, 404]);
});

test('an owner can promote another member to owner after a step-up, and the last owner cannot leave', async () => {
  const { person, accountId } = await joinApplication(server, ada, 'second@example.com', 'admin');
  const path = `${MEMBERS}/${accountId}`;
  await server.advance(301_000);
  const refusal = await ada.send('PATCH', path, { role: 'owner' });
  assert.deepEqual([refusal.status, codeOf(refusal)], [401, 'insufficient_user_authentication']);
  await stepUp(ada);
  assert.equal((await ada.send('PATCH', path, { role: 'owner' })).status, 200);
  assert.equal((await person.send('DELETE', path)).status, 204);
  const adaId = [...(await readRoles(server, ada))].find(([, role]) => role === 'owner')?.[0];
  const lastOwnerRefusal = await ada.send('DELETE', `${MEMBERS}/${adaId}`);
  assert.deepEqual([lastOwnerRefusal.status, codeOf(lastOwnerRefusal)], [409, 'last_owner']);
});

test('an expired or revoked invitation has the matching status and cannot be used to register', async () => {
  const invitationResponse = await ada.post<IssuedInvitation>(INVITATIONS, {
    ...{ email: 'late@example.com', role: 'viewer', expiresIn: 3600 },
  });
  const revokedInvitation = await invite(server, ada, 'gone@example.com', 'viewer');
  const path = `${INVITATIONS}/${revokedInvitation.id}`;
  assert.equal((await ada.send('DELETE', path)).status, 204);
  assert.equal((await ada.send('DELETE', path)).status, 404);
  await server.advance(HOUR_MS);
  assert.deepEqual(
    [await readStatus(invitationResponse.body.id), await readStatus(revokedInvitation.id)],
    ['expired', 'revoked'],
  );
  const secret = new URL(invitationResponse.body.acceptUrl).hash.slice(1);
  for (const [email, invitation] of [
    ['late@example.com', secret],
    ['gone@example.com', revokedInvitation.secret],
  ]) {
    const request = { name: 'x', email, password: 'a long enough password', invitation };
    const refusal = await new Person(server).post('/v1/sign-in/register', request);
    assert.deepEqual([refusal.status, codeOf(refusal)], [403, 'permission_denied']);
  }
});

interface ListPage {
  readonly data: ReadonlyArray<{ readonly id?: string; readonly accountId?: string }>;
  readonly nextCursor?: string;
}

const idOf = ({ id, accountId }: ListPage['data'][number]): string | undefined => id ?? accountId;

test('the lists of members and invitations are paginated', async () => {
  for (const path of [MEMBERS, INVITATIONS]) {
    // The time of last use is written after the response was sent, so only ids are compared.
    const all = (await ada.get<ListPage>(`${path}?limit=100`)).body.data.map(idOf);
    const listedIds: unknown[] = [];
    let cursor = '';
    for (let page = 0; page < all.length; page += 1) {
      const { body } = await ada.get<ListPage>(`${path}?limit=1${cursor}`);
      listedIds.push(...body.data.map(idOf));
      cursor = `&cursor=${body.nextCursor}`;
      assert.equal(body.nextCursor === undefined, page === all.length - 1);
    }
    assert.deepEqual(listedIds, all);
  }
});

test('the audit log records invitations, role changes, removals and departures', async () => {
  const { body } = await ada.get<AuditPage>(`${APPLICATION}/audit?limit=100`);
  const actions = new Set(body.data.map(({ action }) => action));
  for (const action of ['created', 'accepted', 'refused', 'revoked'] as const)
    assert.ok(actions.has(`invitation.${action}`), action);
  for (const action of ['role_changed', 'removed', 'left'] as const) assert.ok(actions.has(`member.${action}`), action);
  const roleChangeEntry = body.data.find(({ action }) => action === 'member.role_changed');
  assert.deepEqual([roleChangeEntry?.actor.name, roleChangeEntry?.details], ['Ada', { from: 'admin', to: 'owner' }]);
  assert.ok(!JSON.stringify(body).includes('biv_'));
});

test('an application can send at most 20 invitations per hour, and can have at most 50 pending invitations', async () => {
  const { body: made } = await ada.post<{ id: string }>('/v1/applications', { name: 'Many' });
  const key = await createOwnerToken(server);
  const path = `/v1/applications/${made.id}/invitations`;
  const invitePerson = (n: number) =>
    server.api('POST', path, { key, body: { email: `p${n}@example.com`, role: 'viewer' } });
  for (const [from, to] of [
    [0, 20],
    [20, 40],
    [40, 50],
  ] as const) {
    for (let n = from; n < to; n += 1) assert.equal((await invitePerson(n)).status, 201);
    const refusal = await invitePerson(99);
    if (to < 50) {
      assert.deepEqual([refusal.status, codeOf(refusal)], [429, 'rate_limited']);
      assert.ok(Number(refusal.headers['retry-after']) > 3_000);
      await server.advance(HOUR_MS);
    } else assert.deepEqual([refusal.status, codeOf(refusal)], [409, 'limit_reached']);
  }
});
