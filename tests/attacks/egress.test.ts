// A session must not reach metadata addresses, private addresses and the machine's own addresses, however they are
// spelled or embedded. With an open policy the same requests arrive, which proves that the tests are effective. No
// packet leaves the network namespace of the tests.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { getuid } from 'node:process';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Attempt, Report } from './egress-inside.ts';
import { FORBIDDEN_IPV4, FORBIDDEN_IPV6 } from './egress-spellings.ts';

const INSIDE_FILE = fileURLToPath(new URL('egress-inside.ts', import.meta.url));
const RUN_TIMEOUT_MS = 300_000;
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
/** The minimum number of attempts in a complete run. */
const ATTEMPTS_MIN = 600;

let report: Report;

before(async () => {
  const user = getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  // The network namespace has no name, so the kernel removes it when the process ends.
  const args = [...user, '--net', '--', process.execPath, INSIDE_FILE];
  const { stdout } = await promisify(execFile)('unshare', args, {
    timeout: RUN_TIMEOUT_MS,
    killSignal: 'SIGKILL',
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  report = JSON.parse(stdout);
});

const nameOf = ({ via, host }: Attempt): string => `${host} by ${via}`;

describe('spellings of forbidden addresses', () => {
  test('these tests try to reach each forbidden address, by CONNECT and by plain HTTP', () => {
    assert.ok(report.attempts.length >= ATTEMPTS_MIN, `${report.attempts.length} attempts`);
    for (const [address] of [...FORBIDDEN_IPV4, ...FORBIDDEN_IPV6])
      for (const via of ['connect', 'http'])
        assert.ok(
          report.attempts.some(attempt => attempt.reachedAddress === address && attempt.via === via),
          `${address} by ${via}`,
        );
    assert.ok(report.attempts.some(({ via }) => via === 'curl connect'));
  });

  test('every spelling of a forbidden address is refused by the rule for the address, and no packet arrives', () => {
    const wrongAttempts = report.attempts.filter(({ via, rule, shut }) => {
      // curl does not print the headers of a refused CONNECT.
      return shut.hits !== 0 || shut.status !== 403 || (shut.said !== rule && via !== 'curl connect');
    });
    assert.deepEqual(
      wrongAttempts.map(attempt => ({ name: nameOf(attempt), rule: attempt.rule, ...attempt.shut })),
      [],
    );
  });

  test('a request succeeds with every spelling of an address if the address is allowed', () => {
    const wrongAttempts = report.attempts.filter(
      ({ reachedAddress, opened }) => opened.hits !== 1 || opened.status !== 200 || opened.said !== reachedAddress,
    );
    assert.deepEqual(
      wrongAttempts.map(attempt => ({ name: nameOf(attempt), lands: attempt.reachedAddress, ...attempt.opened })),
      [],
    );
  });
});

const findScene = (wanted: string): unknown => {
  assert.ok(wanted in report.scenes, `egress-inside.ts reported no scene named ${wanted}`);
  return report.scenes[wanted];
};

const PUBLIC_ADDRESS = '93.184.216.34';
const proxyMethods = ['connect', 'http'] as const;

describe('hostile name servers', () => {
  test('the proxy connects to the checked address of a name, and refuses the name once its address is private', () => {
    assert.deepEqual(findScene('turning, first'), { status: 200, said: PUBLIC_ADDRESS, hits: 1, asked: 1 });
    assert.deepEqual(findScene('turning, second'), { status: 403, said: 'private', hits: 0, asked: 2 });
    assert.deepEqual(findScene('turning, third'), { status: 403, said: 'private', hits: 0, asked: 3 });
  });

  test('the proxy connects to an ordinary public name that is not explicitly allowed', () => {
    for (const via of proxyMethods)
      assert.deepEqual(findScene(`public by ${via}`), { status: 200, said: '2606:2800:220:1::9', hits: 1 });
  });

  test('the proxy refuses a name with one private address among public ones', () => {
    const rules = { 'mixed.test': 'private', 'mixed6.test': 'unique_local', 'mapped.test': 'private' };
    const reachedAddresses = { 'mixed.test': PUBLIC_ADDRESS, 'mixed6.test': 'fd00::9', 'mapped.test': '10.9.9.9' };
    for (const host of ['mixed.test', 'mixed6.test', 'mapped.test'] as const)
      for (const via of proxyMethods) {
        assert.deepEqual(findScene(`${host} shut by ${via}`), { status: 403, said: rules[host], hits: 0 });
        assert.deepEqual(findScene(`${host} opened by ${via}`), { status: 200, said: reachedAddresses[host], hits: 1 });
      }
  });
});

describe("the server's own listener", () => {
  test('connections to the listener of the server are refused on every address, even if everything is allowed', () => {
    const hosts = [
      '127.0.0.1',
      '[::1]',
      '0.0.0.0',
      '127.5.5.5',
      '10.9.9.9',
      PUBLIC_ADDRESS,
      '[64:ff9b::a09:909]',
      'localhost',
    ];
    for (const host of hosts)
      for (const via of proxyMethods)
        for (const how of ['shut', 'opened by range'])
          assert.deepEqual(
            findScene(`own ${host} ${how} by ${via}`),
            { status: 403, said: 'own_service', hits: 0 },
            `${host} ${how}`,
          );
  });

  test('the listener of the server is reachable if the operator opened exactly this address and port', () => {
    for (const via of proxyMethods)
      assert.deepEqual(findScene(`own opened exactly by ${via}`), { status: 200, said: '127.0.0.1', hits: 1 });
  });
});

describe('another service of this machine, on an address in a public range', () => {
  const outcomeOf = (name: string): { status: unknown; said: unknown } => {
    const { status, said } = Object(findScene(name));
    return { status, said };
  };
  const OWN_ADDRESS_REFUSAL = { status: 403, said: 'own_address' };

  test('connections to another service of this machine are refused in every spelling, even if everything is allowed', () => {
    for (const host of [
      PUBLIC_ADDRESS,
      '[2606:2800:220:1::9]',
      `[::ffff:${PUBLIC_ADDRESS}]`,
      '[64:ff9b::5db8:d822]',
      'public.test',
    ])
      for (const how of ['shut', 'opened by range'])
        for (const via of proxyMethods)
          assert.deepEqual(
            findScene(`machine ${host} ${how} by ${via}`),
            { ...OWN_ADDRESS_REFUSAL, hits: 0 },
            `${host} ${how}`,
          );
    for (const via of proxyMethods) {
      assert.deepEqual(findScene(`machine loopback opened by range by ${via}`), { ...OWN_ADDRESS_REFUSAL, hits: 0 });
      assert.deepEqual(findScene(`machine opened at another port by ${via}`), { ...OWN_ADDRESS_REFUSAL, hits: 0 });
    }
  });

  test('connections to another service of this machine are refused on a new address and on an interface without a carrier', () => {
    for (const via of proxyMethods) {
      assert.deepEqual(outcomeOf(`machine, an address that has just come by ${via}`), OWN_ADDRESS_REFUSAL);
      assert.deepEqual(outcomeOf(`machine, an interface without a carrier by ${via}`), OWN_ADDRESS_REFUSAL);
    }
  });

  test('another service of this machine is reachable if the operator opened exactly this address and port', () => {
    for (const via of proxyMethods)
      assert.deepEqual(findScene(`machine opened exactly by ${via}`), { status: 200, said: PUBLIC_ADDRESS, hits: 1 });
  });
});

describe('hosts that do not respond', () => {
  test('the proxy tries the next address of a name without waiting for the first one to fail', () => {
    for (const via of proxyMethods)
      assert.deepEqual(findScene(`slow by ${via}`), { status: 200, said: PUBLIC_ADDRESS, hits: 1 });
  });

  test('the proxy gives up on a host that never responds, and reports the reason', () => {
    // A plain HTTP request then gets no final response. Only the interim response names the failure.
    for (const [via, status] of [
      ['connect', 504],
      ['http', 100],
    ] as const)
      assert.deepEqual(findScene(`silent by ${via}`), { status, said: 'connect_timed_out', hits: 0 });
  });
});
