// Opens slots in an environment in which no jail can be created. This must fail rather than run with less isolation
// than requested. The kernel forbids user namespaces here: the opener runs in a user namespace of its own with a limit
// of zero.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { jailedForm } from '../../server/engines/slots/open-slots.ts';
import { isObject } from '../../server/kit/json.ts';
import { leftoversOf, makeDataDir, removeDataDir } from './slots-lab.ts';

const OPEN_TIMEOUT_MS = 60_000;
const OPENER = join(import.meta.dirname, 'slots-opener.ts');

/** An ordinary user (id 1000) who may not create user namespaces. */
const NO_NAMESPACES_PREFIX = [
  ...['unshare', '--user', '--map-user=1000', '--map-group=1000', '--keep-caps', '--', 'sh', '-c'],
  `echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs -- "$@"`,
  'sh',
];

describe('slots that cannot be opened', { concurrency: 1 }, () => {
  let dataDir = '';
  before(async () => {
    dataDir = await makeDataDir();
  });
  after(() => removeDataDir(dataDir));

  const open = (
    args: readonly string[],
    prefix: readonly string[] = [],
    inDir = dataDir,
  ): Readonly<Record<string, unknown>> => {
    const [command = '', ...rest] = [...prefix, process.execPath, OPENER, inDir, ...args];
    const { stdout, stderr } = spawnSync(command, rest, { encoding: 'utf8', timeout: OPEN_TIMEOUT_MS });
    assert.match(stdout, /^\{/, stderr);
    const report: unknown = JSON.parse(stdout);
    assert.ok(isObject(report));
    return report;
  };

  test('isolation "slot" is refused with advice if user namespaces are forbidden', () => {
    const { code, message, warnings } = open(['slot', 'loopback'], NO_NAMESPACES_PREFIX);
    assert.equal(code, 'isolation_unavailable');
    assert.match(String(message), /unshare failed.*user\.max_user_namespaces.*BERTH_ISOLATION=process/s);
    assert.deepEqual(warnings, []);
  });

  test('isolation "auto" is refused without user namespaces if the server is reachable from other machines', () => {
    assert.equal(open(['auto', 'public'], NO_NAMESPACES_PREFIX).code, 'isolation_unavailable');
  });

  test('with isolation "auto" on loopback, boxes run without a jail if none can be created, and the log lists the missing protection', () => {
    const { form, isolation, warnings } = open(['auto', 'loopback'], NO_NAMESPACES_PREFIX);
    assert.deepEqual({ form, isolation }, { form: 'process', isolation: 'process' });
    assert.match(JSON.stringify(warnings), /isolation\.none.*unshare failed.*No jail.*No network namespace/);
  });

  test('isolation "auto" uses the jail if it can be created', () => {
    assert.equal(open(['auto', 'loopback']).form, jailedForm());
  });

  test('as root, isolation "auto" on loopback is refused if there are more slots than user ids', () => {
    const { code, form, warnings } = open(['auto', 'loopback', '', '999']);
    const [expectedCode, expectedForm] =
      jailedForm() === 'root' ? ['isolation_unavailable', undefined] : [undefined, jailedForm()];
    assert.deepEqual({ code, form, warnings }, { code: expectedCode, form: expectedForm, warnings: [] });
  });

  test('a malformed install id is reported with isolation "slot" and with isolation "auto"', async () => {
    const otherDir = await makeDataDir();
    after(() => removeDataDir(otherDir));
    writeFileSync(join(otherDir, 'install-id'), 'short');
    for (const isolation of ['slot', 'auto']) {
      const { code, message } = open([isolation, 'loopback'], [], otherDir);
      assert.equal(code, 'isolation_unavailable');
      assert.match(String(message), /^Fault: \S+ does not contain eight hex digits\. Remove the file [^.]+\.$/);
    }
  });

  test('a missing Chromium is reported with its path and the command that installs it', () => {
    const { code, message } = open(['auto', 'loopback', '/usr/lib/no-such-browser']);
    assert.equal(code, 'box_start_failed');
    assert.match(String(message), /no-such-browser.*apt-get install chromium/);
  });

  test('if Chromium cannot be started, opening slots fails with the error output, and nothing of the box remains', () => {
    const failingChromium = join(dataDir, 'browser');
    writeFileSync(failingChromium, '#!/usr/lib/no-such-interpreter\n');
    chmodSync(failingChromium, 0o755);
    const { code, message } = open(['slot', 'loopback', failingChromium]);
    assert.equal(code, 'isolation_unavailable');
    assert.match(String(message), /execvp/);
    assert.deepEqual(leftoversOf(dataDir, 'any'), []);
  });

  test('a passed isolation probe is repeated if the browser changes or the stored result does not match', () => {
    open(['slot', 'loopback']);
    const file = join(dataDir, 'isolation-probe.json');
    const passedProbe = readFileSync(file, 'utf8');
    const failingChromium = join(dataDir, 'browser');
    assert.equal(open(['slot', 'loopback', failingChromium]).code, 'isolation_unavailable');
    assert.equal(readFileSync(file, 'utf8'), passedProbe);
    writeFileSync(file, passedProbe.replace(/[0-9a-f]{8}-/, '00000000-'));
    open(['slot', 'loopback']);
    assert.equal(readFileSync(file, 'utf8'), passedProbe);
  });
});
