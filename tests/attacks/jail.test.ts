// Tries each attack on the jail, in each form of isolation. The attacks must be refused in a jail and succeed without
// one, which proves that the tests are effective. Everything runs in a new network namespace with the foreign addresses
// on its own interface, so no packet can leave the machine.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { before, describe, test } from 'node:test';
import type { Form } from '../../server/engines/slots/slots.ts';
import { withTimeout } from '../../server/kit/wait.ts';
import { asOrdinaryUser } from '../engines/slots-user.ts';
import { TEST_ENGINE } from '../harness/engine.ts';
import { ATTACKS, NETWORK_SCRIPT, type Outcome } from './jail-attacks.ts';

const ATTACK_TIMEOUT_MS = 300_000;

const OWN_ENV = { PATH: process.env.PATH ?? '', BERTH_TEST_ENGINE: TEST_ENGINE };

/**
 * In a jail, the folder of every box has the same path. Without a jail this path does not exist, so the attack fails
 * too.
 */
const JAIL_ONLY_ATTACKS = ["read another session's folder by the path of its box"];

if (process.getuid?.() === 0) {
  describeAttacks('root', true, () => runAttacks('root', [], process.execPath, import.meta.dirname, OWN_ENV));
  describeAttacks('rootless', true, () =>
    asOrdinaryUser(({ prefix, node, checkout, env }) =>
      runAttacks('rootless', prefix, node, join(checkout, 'tests/attacks'), { ...env, BERTH_TEST_ENGINE: TEST_ENGINE }),
    ),
  );
  // Proves that the tests are effective. Headless shell lists no folders and loads no extensions, with or without a
  // jail, so only Chromium is tested.
  if (TEST_ENGINE === 'chromium')
    describeAttacks('process', false, () => runAttacks('process', [], process.execPath, import.meta.dirname, OWN_ENV));
}

type Outcomes = Readonly<Record<string, Outcome>>;

function describeAttacks(form: Form, isJailed: boolean, attackAll: () => Promise<Outcomes>): void {
  describe(`attacks by a client of a browser with the isolation form ${form}`, () => {
    let outcomes: Outcomes = {};
    before(async () => {
      outcomes = await attackAll();
    });
    for (const name of Object.keys(ATTACKS)) {
      const succeeds = !isJailed && !JAIL_ONLY_ATTACKS.includes(name);
      test(`a client of a browser ${succeeds ? 'can' : 'cannot'} ${name}`, () => {
        const outcome = outcomes[name];
        assert.ok(outcome, 'was not tried');
        assert.equal(outcome.succeeded, succeeds, outcome.seen);
        // If the browser did not respond, the test does not show that the attack was refused.
        assert.doesNotMatch(outcome.seen, /NO ANSWER|pipe .*was closed/);
      });
    }
  });
}

function runAttacks(
  form: Form,
  prefix: readonly string[],
  node: string,
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<Outcomes> {
  const args = [
    '--net',
    '--',
    'sh',
    '-c',
    NETWORK_SCRIPT,
    'sh',
    ...prefix,
    node,
    join(folder, 'jail-attacks.ts'),
    form,
  ];
  return withTimeout(ATTACK_TIMEOUT_MS, `the attacks on form ${form}`, async signal => {
    const child = spawn('unshare', args, { env, cwd: '/', stdio: ['ignore', 'pipe', 'inherit'], signal });
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    assert.equal(code, 0, output);
    return JSON.parse(output) as Outcomes;
  });
}
