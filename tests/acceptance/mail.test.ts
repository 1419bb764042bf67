// E-mail is sent through the operator's mail server, retried while that server refuses it, and readable by the
// operator.
import assert from 'node:assert/strict';
import { afterEach, before, test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { InvitationPage, IssuedInvitation } from '../../contract/invitations.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { startServer } from '../harness/server.ts';
import { startMailServer } from '../harness/smtp.ts';
import { eventually } from '../harness/until.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** The first retry intervals. */
const RETRY_INTERVALS_MS = [30, 60, 120].map(seconds => seconds * SECOND_MS);

interface PrintedMail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly sentAt?: string;
  readonly nextAttemptAt?: string;
  readonly failure?: string;
}

const smtp = await startMailServer();
const server = await startServer({
  clock: 'test',
  env: { BERTH_SMTP_URL: smtp.url, BERTH_SMTP_FROM: 'berth@mail.test' },
});
const INVITATIONS = `/v1/applications/${server.applicationId}/invitations`;
let token: string;

before(async () => {
  token = await createOwnerToken(server);
});

afterEach(() => {
  smtp.refusal = undefined;
});

const invite = (email: string) =>
  server.api<IssuedInvitation & ErrorBody>('POST', INVITATIONS, { key: token, body: { email, role: 'viewer' } });

async function readMail(to: string): Promise<PrintedMail> {
  const { code, stdout, stderr } = await server.operate('outbox', '--json');
  assert.equal(code, 0, stderr);
  const mails: readonly PrintedMail[] = JSON.parse(stdout);
  return (
    mails.find(mail => mail.to === to) ?? assert.fail(`there is no e-mail to ${to}; the outbox contains: ${stdout}`)
  );
}

const countRcpts = (): number => smtp.commands.filter(verb => verb === 'RCPT').length;

const waitForMails = (count: number) =>
  eventually(
    'the mail',
    async () => smtp.mails.length,
    length => length === count,
  );

test('an e-mail is sent immediately with the correct addresses, and its text is then deleted', async () => {
  const { body } = await invite('grace@example.com');
  await waitForMails(1);
  const [mail] = smtp.mails;
  assert.deepEqual([mail?.from, mail?.to], ['berth@mail.test', ['grace@example.com']]);
  for (const line of [/^From: berth@mail\.test$/m, /^To: grace@example\.com$/m, /^Auto-Submitted: auto-generated$/m])
    assert.match(mail?.source ?? '', line);
  assert.match(mail?.source ?? '', /^Subject: Invitation to Default$/m);
  const text = (mail?.source ?? '').replaceAll('=\n', '').replaceAll('=3D', '=');
  assert.ok(text.includes(body.acceptUrl), text);
  const sentMail = await eventually(
    'the time of sending to be recorded',
    () => readMail('grace@example.com'),
    ({ sentAt }) => sentAt !== undefined,
  );
  assert.equal(sentMail.text, '');
});

test('a temporarily refused e-mail is sent again at increasing intervals', async () => {
  smtp.refusal = '451 4.3.0 try again later';
  const attemptsBefore = countRcpts();
  await invite('later@example.com');
  const waitForAttempts = (count: number) =>
    eventually(
      'an attempt to send the e-mail',
      async () => countRcpts() - attemptsBefore,
      n => n === count,
    );
  await waitForAttempts(1);
  await eventually(
    'the reason of the refusal to be stored',
    () => readMail('later@example.com'),
    ({ failure }) => /451/.test(failure ?? ''),
  );
  for (const [index, pauseMs] of RETRY_INTERVALS_MS.entries()) {
    await server.advance(pauseMs - 10 * SECOND_MS);
    assert.equal(countRcpts() - attemptsBefore, index + 1, 'no attempt before its time');
    if (index === RETRY_INTERVALS_MS.length - 1) smtp.refusal = undefined;
    await server.advance(20 * SECOND_MS);
    await waitForAttempts(index + 2);
  }
  await waitForMails(2);
  assert.match(smtp.mails[1]?.source ?? '', /^Message-ID: <[0-9a-f-]{36}@berth>$/m);
  await eventually(
    'the time of sending to be recorded',
    () => readMail('later@example.com'),
    ({ sentAt }) => sentAt !== undefined,
  );
});

test('an e-mail that cannot be delivered is retried for a day, and then the operator can still read the e-mail', async () => {
  smtp.refusal = '550 5.1.1 nobody has this address';
  const beganMs = server.now().getTime();
  await invite('nobody@example.com');
  const waitForFailedAttempt = () =>
    eventually(
      'a failed attempt to send the e-mail',
      () => readMail('nobody@example.com'),
      ({ failure }) => failure !== undefined,
    );
  let mail = await waitForFailedAttempt();
  let pauseMs = 30 * SECOND_MS;
  while (mail.nextAttemptAt !== undefined) {
    const nextAttemptMs = Date.parse(mail.nextAttemptAt);
    assert.ok(nextAttemptMs - server.now().getTime() <= HOUR_MS + MINUTE_MS, mail.nextAttemptAt);
    assert.ok(nextAttemptMs - beganMs < 26 * HOUR_MS, mail.nextAttemptAt);
    const attemptsBefore = countRcpts();
    await server.advance(nextAttemptMs - server.now().getTime() + 10 * SECOND_MS);
    await eventually(
      'an attempt to send the e-mail',
      async () => countRcpts(),
      now => now > attemptsBefore,
    );
    pauseMs = Math.min(HOUR_MS, 2 * pauseMs);
    const earliestMs = nextAttemptMs + pauseMs;
    mail = await eventually(
      'the next attempt or the end of the attempts',
      () => readMail('nobody@example.com'),
      ({ nextAttemptAt }) => nextAttemptAt === undefined || Date.parse(nextAttemptAt) >= earliestMs,
    );
  }
  assert.ok(server.now().getTime() - beganMs > 24 * HOUR_MS);
  assert.match(mail.failure ?? '', /550 5\.1\.1/);
  assert.match(mail.text, /#biv_/);
});

test('an address gets at most 20 e-mails per hour, and an invitation above the limit is refused and revoked', async () => {
  for (let n = 0; n < 20; n += 1) {
    // Each invitation is from another application, because the number of invitations per application is limited.
    const applicationResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
      key: token,
      body: { name: `a${n}` },
    });
    const path = `/v1/applications/${applicationResponse.body.id}/invitations`;
    const body = { email: 'often@example.com', role: 'viewer' };
    assert.equal((await server.api('POST', path, { key: token, body })).status, 201);
  }
  const refusal = await invite('often@example.com');
  assert.deepEqual([refusal.status, refusal.body.code], [429, 'rate_limited']);
  const { body } = await server.api<InvitationPage>('GET', INVITATIONS, { key: token });
  assert.deepEqual([body.data[0]?.email, body.data[0]?.status], ['often@example.com', 'revoked']);
});

test('an application name with special characters cannot add a header to an e-mail', async () => {
  const name = 'Ünï "; Bcc: evil@example.com, <x>';
  const applicationResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
    key: token,
    body: { name },
  });
  const mailsBefore = smtp.mails.length;
  const path = `/v1/applications/${applicationResponse.body.id}/invitations`;
  await server.api('POST', path, { key: token, body: { email: 'special@example.com', role: 'viewer' } });
  const mail = await eventually(
    'the mail',
    async () => smtp.mails.slice(mailsBefore).find(({ to }) => to.includes('special@example.com')),
    one => one !== undefined,
  );
  assert.deepEqual(mail?.to, ['special@example.com']);
  const [head = ''] = (mail?.source ?? '').split('\n\n', 1);
  assert.ok(!/^bcc:/im.test(head), head);
  assert.match(head, /^Subject: =\?UTF-8\?/m);
});

test('a mail server that does not respond does not delay API responses', async () => {
  smtp.isSilent = true;
  assert.equal((await invite('silent@example.com')).status, 201);
  assert.equal((await readMail('silent@example.com')).sentAt, undefined);
  smtp.isSilent = false;
});
