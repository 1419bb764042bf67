// The host: its current and past state, which only its operator can read, and the report of `berth doctor`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { Host, HostExamination } from '../../contract/host.ts';
import type { HostList, HostSessions } from '../../contract/hosts.ts';
import {
  DESKTOP,
  DESKTOP_DARK,
  ensureConsoleBuilt,
  findConsoleLink,
  PHONE,
  PHONE_DARK,
  visitSessions,
} from '../harness/console.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { registerOtherPerson } from '../harness/other-person.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const PATH = '/v1/operator/host';
const HOSTS = '/v1/operator/hosts';
const MINUTE_MS = 60_000;

await ensureConsoleBuilt();
const server = await startServer({ clock: 'test', env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_REGISTRATION: 'open' } });
const token = await createOwnerToken(server);
const link = findConsoleLink(server);

test('the operator can read the current and recent load of the machine and the server', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const read = async (): Promise<Host> => {
    const response = await server.api<Host>('GET', PATH, { key: token });
    assert.equal(response.status, 200, response.text);
    return response.body;
  };
  const countBefore = (await read()).samples.length;
  const advanceAndRead = async (): Promise<Host> => {
    await server.advance(MINUTE_MS);
    return read();
  };
  const host = await eventually(
    'three new samples',
    advanceAndRead,
    ({ samples }) => samples.length >= countBefore + 3,
  );
  assert.equal(host.now.sessions, 1);
  assert.ok(host.now.slotsUsed >= 1 && host.now.diskFreeBytes > 0 && host.now.serverBytes > 0);
  assert.ok(host.now.memoryUsedBytes > 0 && host.now.memoryUsedBytes <= host.memoryBytes);
  assert.ok(host.now.cpuShare >= 0 && host.now.cpuShare <= 1);
  assert.equal(host.nodeVersion, process.versions.node);
  assert.ok(host.checks.some(({ name, ok }) => name === 'database' && ok));
  const times = host.samples.map(({ at }) => Date.parse(at));
  assert.deepEqual(
    times,
    times.toSorted((one, other) => one - other),
  );
  await server.release(id);
});

test('on a single machine, the host list contains only this host, whose sessions can be listed, and the host cannot be drained', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const { status, body, text } = await server.api<HostList>('GET', HOSTS, { key: token });
  assert.equal(status, 200, text);
  const [host, ...others] = body.data;
  assert.deepEqual([body.isAlone, others, host?.isThis, host?.state, host?.used], [true, [], true, 'alone', 1]);
  const sessionsResponse = await server.api<HostSessions>('GET', `${HOSTS}/${host?.id}/sessions`, { key: token });
  assert.deepEqual(
    sessionsResponse.body.data.map(one => [one.id, one.applicationName, one.status]),
    [[id, 'Default', 'RUNNING']],
  );
  const unknownHostResponse = await server.api<ErrorBody>('GET', `${HOSTS}/${server.applicationId}/sessions`, {
    key: token,
  });
  assert.deepEqual([unknownHostResponse.status, unknownHostResponse.body.code], [404, 'not_found']);
  const operator = await Person.setUpOwner(server);
  const refusal = await operator.send<ErrorBody>('PATCH', `${HOSTS}/${host?.id}`, { draining: true });
  assert.deepEqual([refusal.status, refusal.body.code], [422, 'feature_unavailable'], refusal.text);
  await server.release(id);
});

test('concurrent requests to examine the host get the same result, and a running session is not affected', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const examine = () => server.api<HostExamination>('POST', `${PATH}/examination`, { key: token });
  const [firstResponse, secondResponse] = await Promise.all([examine(), examine()]);
  assert.equal(firstResponse.status, 200, firstResponse.text);
  assert.deepEqual(secondResponse.body, firstResponse.body);
  const browserFinding = firstResponse.body.findings.find(({ name }) => name === 'chromium');
  assert.deepEqual([browserFinding?.ok, browserFinding?.cure], [true, '']);
  assert.match(String(browserFinding?.detail), /\d+\.\d+\.\d+/);
  assert.equal((await server.read(id)).status, 'RUNNING');
  assert.equal((await server.release(id)).status, 'COMPLETED');
});

test('another account, and a token that is restricted to an application, cannot read or examine the host', async () => {
  const otherPerson = await registerOtherPerson(server, 'eve@example.com', 'owner');
  const tokenResponse = await server.api<{ token: string }>('POST', '/v1/account/tokens', {
    key: token,
    body: { name: 'narrow', scopes: ['applications:read'], applicationIds: [server.applicationId] },
  });
  for (const [method, path] of [
    ['GET', PATH],
    ['POST', `${PATH}/examination`],
    ['GET', HOSTS],
    ['GET', `${HOSTS}/${server.applicationId}/sessions`],
  ] as const) {
    const responses = [
      await server.api<ErrorBody>(method, path, { key: tokenResponse.body.token }),
      await otherPerson.send<ErrorBody>(method, path),
    ];
    for (const { status, body } of responses) assert.deepEqual([status, body.code], [403, 'permission_denied']);
    assert.equal((await server.api(method, path, { key: server.key })).status, 401);
  }
});

for (const look of [DESKTOP, DESKTOP_DARK, { ...DESKTOP, width: 1024 }, PHONE, PHONE_DARK])
  test(`the host check can be started with the keyboard, and the host page has no accessibility violations and does not overflow horizontally at ${look.width} pixels in the ${look.colours} theme`, () =>
    visitSessions(server, link, look, async watchedPage => {
      const { page } = watchedPage;
      await page.goto(`${server.url}/console/host`);
      await page.getByRole('img', { name: /^Processor since/ }).waitFor();
      await page.getByRole('button', { name: 'Examine' }).focus();
      await page.keyboard.press('Enter');
      await page.getByText('system tools').waitFor();
      await watchedPage.assertAccessible();
    }));

test('the hosts page shows that there is only one host, and lists the sessions of the host', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  for (const look of [DESKTOP, DESKTOP_DARK, { ...DESKTOP, width: 1024 }, PHONE, PHONE_DARK])
    await visitSessions(server, link, look, async watchedPage => {
      const { page } = watchedPage;
      await page.goto(`${server.url}/console/hosts`);
      await page.getByText('This is the only host.').waitFor();
      await page.getByRole('button', { name: 'Running here (1)' }).click();
      await page.getByRole('link', { name: 'Default' }).waitFor();
      await page.getByText(id).waitFor();
      await watchedPage.assertAccessible();
    });
  await server.release(id);
});
