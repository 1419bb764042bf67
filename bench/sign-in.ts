// `npm run bench:sign-in`: compares the time of a sign-in with a password and the time of the Argon2id hash alone. Also
// measures an authorized request with each kind of credential.

import { Passwords } from '../server/engines/authenticators/passwords.ts';
import { WaitExpired, withTimeout } from '../server/kit/wait.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { createOwnerToken } from '../tests/harness/limits.ts';
import { PASSWORD, Person } from '../tests/harness/person.ts';
import { TestServer } from '../tests/harness/server.ts';
import { describeMachine, readMachine } from './machine.ts';
import { median } from './statistics.ts';

const BENCH_TIMEOUT_MS = 300_000;
const SIGN_INS = 40;
const REQUESTS = 400;
const EMAIL = 'ada@example.com';

const server = new TestServer({ env: { BERTH_SLOTS: '2' }, isMeasured: true }, await claimFreePort());

async function measureMedianMs(rounds: number, work: () => Promise<unknown>): Promise<string> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startMs = performance.now();
    await work();
    times.push(performance.now() - startMs);
  }
  return median(times).toFixed(2);
}

async function measure(): Promise<void> {
  await server.start();
  const ada = await Person.setUpOwner(server, EMAIL);
  const token = await createOwnerToken(server);
  const passwords = new Passwords();
  const hash = await passwords.hash(PASSWORD);
  const { body } = await server.api<{ data: Array<{ id: string }> }>('GET', '/v1/applications', { key: token });
  const path = `/v1/applications/${body.data[0]?.id}`;
  const rows = [
    ['sign-in with a password', await measureMedianMs(SIGN_INS, () => ada.signIn(EMAIL))],
    ['the Argon2id hash alone, without load', await measureMedianMs(SIGN_INS, () => passwords.matches(PASSWORD, hash))],
    [
      'GET of an application, personal token',
      await measureMedianMs(REQUESTS, () => server.api('GET', path, { key: token })),
    ],
    ['GET of an application, cookie', await measureMedianMs(REQUESTS, () => ada.get(path))],
    ['GET of sessions, agent key', await measureMedianMs(REQUESTS, () => server.api('GET', '/v1/browsers/sessions'))],
  ];
  process.stdout.write(`Measured on: ${describeMachine(await readMachine())}\n\n| p50 | ms |\n| --- | ---: |\n`);
  for (const [name, ms] of rows) process.stdout.write(`| ${name} | ${ms} |\n`);
}

try {
  await withTimeout(BENCH_TIMEOUT_MS, 'the bench', measure);
} catch (error) {
  process.stderr.write(`bench: ${error instanceof WaitExpired ? error.message : error}\n`);
  process.exitCode = 1;
} finally {
  await server.close();
}
process.exit();
