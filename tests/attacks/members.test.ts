// Attacks on members and invitations: changes of roles above the attacker's own, concurrent removals of the last
// owners, and stolen and void invitations. Each must fail.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { AuditPage } from '../../contract/audit.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { InvitationPage } from '../../contract/invitations.ts';
import type { Role } from '../../contract/roles.ts';
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
const AFTER_STEP_UP_MS = 301_000;
const UNKNOWN_ID = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11';
const server = await startServer({ clock: 'test' });
const APPLICATION = `/v1/applications/${server.applicationId}`;
const MEMBERS = `${APPLICATION}/members`;
const INVITATIONS = `${APPLICATION}/invitations`;
const ACCEPT_PATH = '/v1/invitations/accept';
let ada: Person;
let admin: JoinedMember;
let developer: JoinedMember;

before(async () => {
  ada = await Person.setUpOwner(server, 'ada@example.com');
  await verifyEmail(server, ada, 'ada@example.com');
  admin = await joinApplication(server, ada, 'admin@example.com', 'admin');
  developer = await joinApplication(server, ada, 'developer@example.com', 'developer');
});

const codeOf = (response: { readonly body: unknown }): string => (response.body as ErrorBody).code;
const outcomeOf = (response: { readonly status: number; readonly body: unknown }): [number, string] => [
  response.status,
  codeOf(response),
];
const changeRole = (by: Person, accountId: string, role: Role) => by.send('PATCH', `${MEMBERS}/${accountId}`, { role });
const ownerIdsIn = (roles: ReadonlyMap<string, Role>): string[] =>
  [...roles].flatMap(([account, role]) => (role === 'owner' ? [account] : []));
const readOwnerIds = async (): Promise<string[]> => ownerIdsIn(await readRoles(server, ada));

const messageOf = (response: { readonly body: unknown }): string => (response.body as ErrorBody).message;

// ---- roles ---------------------------------------------------------------------------------------------------------

test('an admin cannot create, change or remove an owner, even with a recent step-up', async () => {
  await stepUp(admin.person);
  const [owner = ''] = await readOwnerIds();
  assert.deepEqual(outcomeOf(await changeRole(admin.person, developer.accountId, 'owner')), [403, 'permission_denied']);
  assert.deepEqual(outcomeOf(await changeRole(admin.person, admin.accountId, 'owner')), [403, 'permission_denied']);
  assert.deepEqual(outcomeOf(await changeRole(admin.person, owner, 'viewer')), [403, 'permission_denied']);
  const removeResponse = await admin.person.send('DELETE', `${MEMBERS}/${owner}`);
  assert.deepEqual(outcomeOf(removeResponse), [403, 'permission_denied']);
  const inviteResponse = await admin.person.post(INVITATIONS, { email: 'friend@example.com', role: 'owner' });
  assert.deepEqual(outcomeOf(inviteResponse), [403, 'permission_denied']);
});

test('a developer cannot change, remove or invite a member', async () => {
  for (const response of [
    await changeRole(developer.person, developer.accountId, 'admin'),
    await changeRole(developer.person, admin.accountId, 'viewer'),
    await developer.person.send('DELETE', `${MEMBERS}/${admin.accountId}`),
    await developer.person.post(INVITATIONS, { email: 'friend@example.com', role: 'viewer' }),
    await developer.person.get(INVITATIONS),
  ])
    assert.deepEqual(outcomeOf(response), [403, 'permission_denied']);
});

test('tokens cannot change or remove members, invite an owner or accept an invitation', async () => {
  const key = await createOwnerToken(server);
  const changeResponse = await server.api('PATCH', `${MEMBERS}/${developer.accountId}`, {
    key,
    body: { role: 'admin' },
  });
  assert.deepEqual(outcomeOf(changeResponse), [401, 'invalid_credentials']);
  const removeResponse = await server.api('DELETE', `${MEMBERS}/${developer.accountId}`, { key });
  assert.deepEqual(outcomeOf(removeResponse), [401, 'invalid_credentials']);
  const body = { email: 'friend@example.com', role: 'owner' };
  const inviteResponse = await server.api('POST', INVITATIONS, { key, body });
  assert.deepEqual(outcomeOf(inviteResponse), [401, 'insufficient_user_authentication']);
  const acceptResponse = await server.api('POST', ACCEPT_PATH, { key, body: { token: 'biv_x' } });
  assert.deepEqual(outcomeOf(acceptResponse), [401, 'invalid_credentials']);
});

test('nobody can be made an owner without a recent step-up, either by a role change or by an invitation', async () => {
  await stepUp(ada);
  await server.advance(AFTER_STEP_UP_MS);
  const inviteResponse = await ada.post(INVITATIONS, { email: 'friend@example.com', role: 'owner' });
  for (const response of [await changeRole(ada, developer.accountId, 'owner'), inviteResponse])
    assert.deepEqual(outcomeOf(response), [401, 'insufficient_user_authentication']);
});

test('one owner remains if owners demote or remove each other, or leave, at the same time', async () => {
  const secondMember = await joinApplication(server, ada, 'second@example.com', 'admin');
  const [firstOwnerId = ''] = await readOwnerIds();
  const both = [
    { person: ada, accountId: firstOwnerId },
    { person: secondMember.person, accountId: secondMember.accountId },
  ] as const;
  const [one, two] = both;
  const races: ReadonlyArray<(by: JoinedMember, other: JoinedMember) => Promise<{ status: number }>> = [
    (by, other) => changeRole(by.person, other.accountId, 'admin'),
    by => changeRole(by.person, by.accountId, 'admin'),
    (by, other) => by.person.send('DELETE', `${MEMBERS}/${other.accountId}`),
    by => by.person.send('DELETE', `${MEMBERS}/${by.accountId}`),
  ];
  for (const race of races) {
    for (const { person } of both) await stepUp(person);
    const currentOwner = (await ownersAmong(both))[0] ?? assert.fail('the application has no owner');
    const outsider = currentOwner === one ? two : one;
    const invitation = await invite(
      server,
      currentOwner.person,
      outsider === one ? 'ada@example.com' : 'second@example.com',
      'owner',
    );
    assert.equal((await acceptInvitation(outsider.person, invitation)).status, 200);
    const responses = await Promise.all([race(one, two), race(two, one)]);
    const successes = responses.filter(({ status }) => status < 300).length;
    assert.equal(successes, 1, JSON.stringify(responses.map(({ status }) => status)));
    assert.equal((await ownersAmong(both)).length, 1);
  }
  const [remainingOwner] = await ownersAmong(both);
  if (remainingOwner !== one) {
    // Makes Ada an owner again, because the other tests need her as an owner.
    await stepUp(two.person);
    const ownerInvitation = await invite(server, two.person, 'ada@example.com', 'owner');
    assert.equal((await acceptInvitation(ada, ownerInvitation)).status, 200);
  }
});

async function ownersAmong(people: readonly JoinedMember[]): Promise<JoinedMember[]> {
  const ownerIds = await Promise.all(
    people.map(async ({ person, accountId }) => {
      const { status, body } = await person.get<{ role: Role }>(APPLICATION);
      return status === 200 && body.role === 'owner' ? [accountId] : [];
    }),
  );
  return people.filter(({ accountId }) => ownerIds.flat().includes(accountId));
}

// ---- invitations ---------------------------------------------------------------------------------------------------

test('an invitation is void once its sender is demoted or removed, and remains void after the sender gets the role back', async () => {
  await server.advance(HOUR_MS);
  const inviter = await joinApplication(server, ada, 'inviter@example.com', 'admin');
  const email = 'invited@example.com';
  const firstInvitation = await invite(server, inviter.person, email, 'viewer');
  const person = await register(server, firstInvitation, email);
  await verifyEmail(server, person, email);
  assert.equal((await changeRole(ada, inviter.accountId, 'developer')).status, 200);
  assert.deepEqual(outcomeOf(await acceptInvitation(person, firstInvitation)), [404, 'not_found']);
  assert.equal((await changeRole(ada, inviter.accountId, 'admin')).status, 200);
  assert.deepEqual(outcomeOf(await acceptInvitation(person, firstInvitation)), [404, 'not_found']);
  const secondInvitation = await invite(server, inviter.person, email, 'viewer');
  assert.equal((await ada.send('DELETE', `${MEMBERS}/${inviter.accountId}`)).status, 204);
  assert.deepEqual(outcomeOf(await acceptInvitation(person, secondInvitation)), [404, 'not_found']);
  const { data } = (await ada.get<InvitationPage>(INVITATIONS)).body;
  const statuses = [firstInvitation, secondInvitation].map(({ id }) => data.find(one => one.id === id)?.status);
  assert.deepEqual(statuses, ['revoked', 'revoked']);
});

test('a stolen invitation is refused for another account, and the attempt is recorded in the audit log', async () => {
  const invitation = await invite(server, ada, 'victim@example.com', 'admin');
  const refusal = await acceptInvitation(developer.person, invitation);
  const wrongSecretRefusal = await acceptInvitation(developer.person, {
    ...invitation,
    secret: `${invitation.secret.slice(0, -1)}_`,
  });
  assert.deepEqual(outcomeOf(refusal), [404, 'not_found']);
  assert.deepEqual([wrongSecretRefusal.status, messageOf(wrongSecretRefusal)], [404, messageOf(refusal)]);
  assert.ok(!refusal.text.includes('biv_') && !refusal.text.includes('victim'));
  const auditResponse = await ada.get<AuditPage>(`${APPLICATION}/audit?action=invitation.refused`);
  const [entry] = auditResponse.body.data;
  assert.deepEqual([entry?.actor.id, entry?.outcome], [developer.accountId, 'refused']);
  assert.deepEqual([entry?.target?.id, entry?.details], [invitation.id, { reason: 'other_email' }]);
  // The link does not allow registration with another address either.
  const body = {
    name: 'x',
    email: 'thief@example.com',
    password: 'a long enough password',
    invitation: invitation.secret,
  };
  assert.equal((await new Person(server).post('/v1/sign-in/register', body)).status, 403);
  // Different addresses that look similar are refused too.
  for (const email of ['victim+x@example.com', 'v.ictim@example.com', 'vıctim@example.com'])
    assert.equal((await new Person(server).post('/v1/sign-in/register', { ...body, email })).status, 403, email);
});

test('an account with an unverified address cannot accept an invitation', async () => {
  const email = 'unverified@example.com';
  const invitation = await invite(server, ada, email, 'viewer');
  const person = await register(server, invitation, email);
  assert.deepEqual(outcomeOf(await acceptInvitation(person, invitation)), [404, 'not_found']);
  assert.equal((await person.get(APPLICATION)).status, 404);
});

test('an invitation can be accepted only once, even with concurrent requests or after the member has left', async () => {
  const email = 'once@example.com';
  const invitation = await invite(server, ada, email, 'viewer');
  const person = await register(server, invitation, email);
  await verifyEmail(server, person, email);
  const responses = await Promise.all(Array.from({ length: 15 }, () => acceptInvitation(person, invitation)));
  assert.equal(responses.filter(({ status }) => status === 200).length, 1);
  const { id } = (await person.get<{ id: string }>('/v1/account')).body;
  assert.equal((await person.send('DELETE', `${MEMBERS}/${id}`)).status, 204);
  assert.deepEqual(outcomeOf(await acceptInvitation(person, invitation)), [404, 'not_found']);
});

test('other sites cannot use the cookie of a person to accept an invitation or to change a member', async () => {
  await server.advance(HOUR_MS);
  const invitation = await invite(server, ada, 'developer@example.com', 'admin');
  const evilHeaders = { origin: 'https://evil.example' };
  const acceptResponse = await developer.person.send('POST', ACCEPT_PATH, { token: invitation.secret }, evilHeaders);
  assert.deepEqual(outcomeOf(acceptResponse), [403, 'cross_site_request']);
  const changeResponse = await ada.send('PATCH', `${MEMBERS}/${developer.accountId}`, { role: 'viewer' }, evilHeaders);
  assert.deepEqual(outcomeOf(changeResponse), [403, 'cross_site_request']);
  const removeResponse = await ada.send('DELETE', `${MEMBERS}/${developer.accountId}`, undefined, evilHeaders);
  assert.deepEqual(outcomeOf(removeResponse), [403, 'cross_site_request']);
  assert.equal((await readRoles(server, ada)).get(developer.accountId), 'developer');
});

test('an invitation secret is refused as a credential, and an agent key is refused as an invitation', async () => {
  const { secret } = await invite(server, ada, 'secret@example.com', 'viewer');
  for (const path of ['/v1/applications', '/v1/browsers/sessions']) {
    const bearerResponse = await server.api('GET', path, { key: secret });
    assert.deepEqual(outcomeOf(bearerResponse), [401, 'invalid_credentials']);
  }
  const cookieHeaders = { origin: server.url, cookie: `berth=${secret}` };
  assert.equal((await server.api('GET', '/v1/account', { key: null, headers: cookieHeaders })).status, 401);
  for (const token of [server.key, 'biv_', secret.toUpperCase(), `${secret} `])
    assert.deepEqual(outcomeOf(await developer.person.post(ACCEPT_PATH, { token })), [404, 'not_found']);
});

test('the number of wrong invitation secrets that a person can send is limited', async () => {
  const guess = () => admin.person.post(ACCEPT_PATH, { token: 'biv_guess' });
  for (let n = 0; n < 20; n += 1) assert.equal((await guess()).status, 404);
  assert.deepEqual(outcomeOf(await guess()), [429, 'rate_limited']);
});

test('only twenty of twenty-five concurrent invitations are created', async () => {
  await server.advance(HOUR_MS);
  const inviteNumbered = (n: number) => ada.post(INVITATIONS, { email: `many${n}@example.com`, role: 'viewer' });
  const responses = await Promise.all(Array.from({ length: 25 }, (_, n) => inviteNumbered(n)));
  assert.equal(responses.filter(({ status }) => status === 201).length, 20);
});

test('an invitation is refused if its address contains a mail header or is malformed, or if it has an unknown field', async () => {
  for (const email of [
    'a@b.test\r\nBcc: c@d.test',
    'a@b.test, c@d.test',
    'a <c@d.test>',
    'a\u0000@b.test',
    'a@b@c.test',
  ]) {
    const refusal = await ada.post(INVITATIONS, { email, role: 'viewer' });
    assert.deepEqual(outcomeOf(refusal), [400, 'invalid_request'], JSON.stringify(email));
  }
  const misspeltRefusal = await ada.post(INVITATIONS, { email: 'a@b.test', role: 'viewer', expires: 3600 });
  assert.deepEqual(outcomeOf(misspeltRefusal), [400, 'unknown_field']);
});

test('members and invitations of another application are not found', async () => {
  const { body: otherApplication } = await ada.post<{ id: string }>('/v1/applications', { name: 'Other' });
  const otherPath = `/v1/applications/${otherApplication.id}`;
  const { data } = (await ada.get<InvitationPage>(INVITATIONS)).body;
  for (const id of [data[0]?.id, UNKNOWN_ID])
    assert.deepEqual(outcomeOf(await ada.send('DELETE', `${otherPath}/invitations/${id}`)), [404, 'not_found']);
  for (const id of [developer.accountId, UNKNOWN_ID]) {
    assert.deepEqual(outcomeOf(await ada.send('PATCH', `${otherPath}/members/${id}`, { role: 'viewer' })), [
      404,
      'not_found',
    ]);
    assert.deepEqual(outcomeOf(await ada.send('DELETE', `${otherPath}/members/${id}`)), [404, 'not_found']);
  }
  for (const path of [`${otherPath}/members`, `${otherPath}/invitations`])
    assert.deepEqual(outcomeOf(await developer.person.get(path)), [404, 'not_found']);
  const page = await ada.get<InvitationPage>(`${INVITATIONS}?limit=1`);
  const foreignCursorRefusal = await ada.get(`${otherPath}/invitations?cursor=${page.body.nextCursor}`);
  assert.deepEqual(outcomeOf(foreignCursorRefusal), [400, 'invalid_request']);
});
