// Attempts to read the operator's outbox, whose links and codes sign people in. Anybody except the operator must be
// refused, and so must the operator if their last step-up is too old.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { MailList } from '../../contract/mails.ts';
import type { CurrentAccount } from '../../contract/sign-in.ts';
import { invite, joinApplication, stepUp, verifyEmail } from '../harness/members.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';

const AFTER_STEP_UP_MS = 301_000;
const MAILS = '/v1/operator/mails';
const server = await startServer({ clock: 'test' });

const readMailsAs = (person: Person) => person.get<MailList & ErrorBody>(MAILS);

test('only the first account can read the outbox, only after a recent step-up, and the response forbids caching', async () => {
  const ada = await Person.setUpOwner(server, 'ada@example.com');
  await verifyEmail(server, ada, 'ada@example.com');
  const otherOwner = await joinApplication(server, ada, 'owner@example.com', 'owner');
  await invite(server, ada, 'late@example.com', 'viewer');

  const refusal = await readMailsAs(otherOwner.person);
  assert.deepEqual([refusal.status, refusal.body.code], [403, 'permission_denied']);
  assert.ok(!refusal.text.includes('late@example.com'));
  assert.equal((await otherOwner.person.get<CurrentAccount>('/v1/account')).body.isOperator, undefined);
  assert.equal((await ada.get<CurrentAccount>('/v1/account')).body.isOperator, true);

  await server.advance(AFTER_STEP_UP_MS);
  const stepUpRefusal = await readMailsAs(ada);
  assert.equal(stepUpRefusal.status, 401);
  assert.ok(!stepUpRefusal.text.includes('late@example.com'));

  await stepUp(ada);
  const mailsResponse = await readMailsAs(ada);
  assert.equal(mailsResponse.status, 200);
  assert.equal(mailsResponse.headers['cache-control'], 'no-store');
  assert.equal(mailsResponse.body.hasMailServer, false);
  const mail = mailsResponse.body.data.find(({ to }) => to === 'late@example.com');
  assert.match(mail?.text ?? '', /\/console\/invitation#biv_/);
  assert.equal(mail?.sentAt, undefined);
});
