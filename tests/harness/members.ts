// Invites people to an application and lets them join.
import assert from 'node:assert/strict';
import type { IssuedInvitation } from '../../contract/invitations.ts';
import type { MemberPage } from '../../contract/members.ts';
import type { Role } from '../../contract/roles.ts';
import type { CurrentAccount, EmailCodeSent, SignInResult } from '../../contract/sign-in.ts';
import { PASSWORD, Person, readMailedCode } from './person.ts';
import type { TestServer } from './server.ts';

export interface SentInvitation {
  readonly id: string;
  /** The secret in the invitation link. */
  readonly secret: string;
}

/** Invites a person to the first application. */
export async function invite(server: TestServer, inviter: Person, email: string, role: Role): Promise<SentInvitation> {
  const path = `/v1/applications/${server.applicationId}/invitations`;
  const { status, body, text } = await inviter.post<IssuedInvitation>(path, { email, role });
  assert.equal(status, 201, text);
  return { id: body.id, secret: new URL(body.acceptUrl).hash.slice(1) };
}

/** Registers a person with an invitation for this address. */
export async function register(server: TestServer, { secret }: SentInvitation, email: string): Promise<Person> {
  const person = new Person(server);
  const registration = { name: email.split('@')[0], email, password: PASSWORD, invitation: secret };
  const { status, body, text } = await person.post<SignInResult>('/v1/sign-in/register', registration);
  assert.deepEqual([status, body.status], [200, 'signed_in'], text);
  return person;
}

export async function verifyEmail(server: TestServer, person: Person, email: string): Promise<void> {
  const { body } = await person.post<EmailCodeSent>('/v1/account/email/verification');
  const code = await readMailedCode(server, email);
  const { status, text } = await person.post('/v1/account/email/verify', { ticket: body.ticket, code });
  assert.equal(status, 200, text);
}

export const acceptInvitation = (person: Person, { secret }: SentInvitation) =>
  person.post<{ applicationId: string; role: Role; code?: string }>('/v1/invitations/accept', { token: secret });

export interface JoinedMember {
  readonly person: Person;
  readonly accountId: string;
}

/** Creates a person with this role in the first application. */
export async function joinApplication(
  server: TestServer,
  inviter: Person,
  email: string,
  role: Role,
): Promise<JoinedMember> {
  const invitation = await invite(server, inviter, email, role);
  const person = await register(server, invitation, email);
  await verifyEmail(server, person, email);
  const { status, text } = await acceptInvitation(person, invitation);
  assert.equal(status, 200, text);
  return { person, accountId: await readAccountId(person) };
}

const readAccountId = async (person: Person): Promise<string> =>
  (await person.get<CurrentAccount>('/v1/account')).body.id;

/** Returns the role of each account in the first application. */
export async function readRoles(server: TestServer, reader: Person): Promise<ReadonlyMap<string, Role>> {
  const { status, body, text } = await reader.get<MemberPage>(
    `/v1/applications/${server.applicationId}/members?limit=100`,
  );
  assert.equal(status, 200, text);
  return new Map(body.data.map(({ accountId, role }) => [accountId, role]));
}

export const stepUp = async (person: Person): Promise<void> => {
  const { status, text } = await person.post('/v1/account/step-up', { method: 'password', password: PASSWORD });
  assert.equal(status, 200, text);
};
