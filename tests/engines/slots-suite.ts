// Tests for every form of isolation, and further tests only for slots with a jail. slots.test.ts and
// slots-rootless.test.ts run this suite for each form. Attacks by clients of a browser are tested in tests/attacks.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { CdpPipe } from '../../server/engines/slots/cdp-pipe.ts';
import type { Limits } from '../../server/engines/slots/cgroups.ts';
import { childrenOf, findProcess, innermostPid, isAlive } from '../../server/engines/slots/process-table.ts';
import type { Box, BoxRecord, BoxRequest, Form, Slots } from '../../server/engines/slots/slots.ts';
import { isFault } from '../../server/kit/fault.ts';
import type { SessionId } from '../../server/kit/ids.ts';
import { isObject } from '../../server/kit/json.ts';
import { pollUntil, withTimeout } from '../../server/kit/wait.ts';
import {
  cgroupsOf,
  chromium,
  leftoversOf,
  makeDataDir,
  newSession,
  openTestSlots,
  removeDataDir,
  runInGuest,
  START_TIMEOUT_MS,
  sendWithoutReply,
  startGuest,
  startOptions,
} from './slots-lab.ts';

/** The time since the machine was started, in units of 1/100 s, as in /proc/PID/stat. */
const ticksNow = (): number => 100 * Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);

const FONT_CACHE = '/var/cache/fontconfig';
const MIB = 1024 ** 2;
const WAIT_TIMEOUT_MS = 60_000;
/** Long enough for several checks. */
const SHORT_WAIT_MS = 200;
const CPU_IDLE_TIMEOUT_MS = 30_000;

export function describeSlots(form: Form): void {
  const jailed = form !== 'process';
  let dataDir = '';
  let slots: Slots;
  const openedSlots: Slots[] = [];

  /** Opens slots that are closed at the end of the suite, even if a test fails. */
  const open = async (...more: [limits?: Partial<Limits>, size?: number]): Promise<Slots> => {
    const slots = await openTestSlots(form, dataDir, ...more);
    openedSlots.push(slots);
    return slots;
  };

  const waitUntilGone = (box: Box) => withTimeout(WAIT_TIMEOUT_MS, 'the box to be gone', () => box.whenGone);
  const assertLeavesNothing = async (box: Box): Promise<void> => {
    await box.close();
    assert.deepEqual(leftoversOf(dataDir, box.session), []);
  };

  describe(`slots, form ${form}`, { concurrency: 1 }, () => {
    before(async () => {
      dataDir = await makeDataDir();
      slots = await open();
    });
    after(async () => {
      for (const each of openedSlots) await each.close();
      assert.deepEqual(cgroupsOf(dataDir), []);
      await removeDataDir(dataDir);
    });

    test('the opened slots have the requested form and isolation', () => {
      assert.equal(slots.form, form);
      assert.equal(slots.isolation, jailed ? 'slot' : 'process');
      if (form === 'process') assert.equal(slots.missingFeatures.length, 5);
      if (form === 'rootless') assert.match(slots.missingFeatures.join(), /user id/);
    });

    // ---- start, communication and end of a box ----------------------------------------------------------------------

    test('a box starts and communicates over its FIFOs, and nothing of the box remains after it is closed', async () => {
      const box = await startGuest(slots);
      assert.equal(await runInGuest(box, 'return 6 * 7'), 42);
      assert.equal(box.record.form, form);
      await box.close();
      await box.close();
      assert.deepEqual(await waitUntilGone(box), { why: 'closed', detail: 'closed by the server' });
      assert.deepEqual(leftoversOf(dataDir, box.session), []);
    });

    test('connections to the egress address are forwarded to the listener of the server', async () => {
      const box = await startGuest(slots);
      box.egress.on('connection', (socket: Socket) => socket.end('from the server'));
      assert.equal(await runInGuest(box, connectScript('127.0.0.1', box.egressPort)), 'from the server');
      await assertLeavesNothing(box);
    });

    test('with two slots, a third box is refused while two boxes run, and a freed slot is reused', async () => {
      const limitedSlots = await open({}, 2);
      const [one, other] = await Promise.all([startGuest(limitedSlots), startGuest(limitedSlots)]);
      assert.notEqual(one.record.slot, other.record.slot);
      await assert.rejects(startGuest(limitedSlots), error => isFault(error, 'no_free_slot'));
      await one.close();
      const third = await startGuest(limitedSlots);
      assert.equal(third.record.slot, one.record.slot);
      await limitedSlots.close();
      for (const box of [one, other, third]) assert.deepEqual(leftoversOf(dataDir, box.session), []);
    });

    test('a missing program is reported by its path, and nothing of the box remains', async () => {
      const session = newSession();
      const missingProgram = { executable: '/usr/lib/no-such-browser', args: [], mounts: [] };
      const pendingStart = slots.start(
        startOptions(session, () => missingProgram),
        AbortSignal.timeout(START_TIMEOUT_MS),
      );
      await assert.rejects(
        pendingStart,
        error => isFault(error, 'box_start_failed') && /no-such-browser/.test(error.message),
      );
      assert.deepEqual(leftoversOf(dataDir, session), []);
    });

    test('a program starts only after the folder of its box is filled', async () => {
      const session = newSession();
      const fill: BoxRequest['fill'] = async ({ folder }) => {
        await pollUntil(
          WAIT_TIMEOUT_MS,
          'the rest of the folder to be created',
          () => existsSync(join(folder, '../notes/in')) || undefined,
          1,
        );
        await new Promise(resolve => setTimeout(resolve, 200));
        writeFileSync(join(folder, 'filled'), 'in time', { mode: 0o644 });
      };
      const box = await slots.start({ ...startOptions(session), fill }, AbortSignal.timeout(START_TIMEOUT_MS));
      const path = `${box.folderInBox}/filled`;
      assert.equal(
        await runInGuest(box, `return require('node:fs').readFileSync(${JSON.stringify(path)}, 'utf8')`),
        'in time',
      );
      await assertLeavesNothing(box);
    });

    test('if the folder of a box cannot be filled, the start fails with the reason, and nothing of the box remains', async () => {
      const session = newSession();
      const fill = async (): Promise<void> => {
        await new Promise(resolve => setTimeout(resolve, 20));
        throw new Error('there is nothing to fill it with');
      };
      const pendingStart = slots.start({ ...startOptions(session), fill }, AbortSignal.timeout(START_TIMEOUT_MS));
      await assert.rejects(pendingStart, /there is nothing to fill it with/);
      assert.deepEqual(leftoversOf(dataDir, session), []);
    });

    test('nothing of a box remains when its start is aborted', async () => {
      const session = newSession();
      const controller = new AbortController();
      const pendingStart = slots.start(startOptions(session), controller.signal);
      const folder = join(dataDir, 'sessions', session);
      await pollUntil(
        WAIT_TIMEOUT_MS,
        'the start to be in progress',
        () => existsSync(join(folder, 'notes')) || undefined,
        1,
      );
      controller.abort(new Error('aborted'));
      await assert.rejects(pendingStart, /aborted/);
      assert.deepEqual(leftoversOf(dataDir, session), []);
    });

    // ---- reasons for the end of a box -------------------------------------------------------------------------------

    test('the exit code of a program is reported', async () => {
      const box = await startGuest(slots);
      sendWithoutReply(box, 'process.exit(7)');
      assert.deepEqual(await waitUntilGone(box), { why: 'exited', detail: 'exited with code 7' });
      await assertLeavesNothing(box);
    });

    test('the last part of the standard error of the program is kept', async () => {
      const box = await startGuest(slots);
      sendWithoutReply(
        box,
        "console.error('the last words'); process.exitCode = 1; setTimeout(() => process.exit(), 20)",
      );
      await waitUntilGone(box);
      assert.match(box.stderrTail(), /the last words/);
      await assertLeavesNothing(box);
    });

    test('every process of a box is stopped when the leader is killed', () =>
      assertEndsWhenKilled(box => box.record.pid));

    test('every process of a box is stopped when the program that runs in the box is killed', () =>
      assertEndsWhenKilled(box => programPidOf(box.record, jailed)));

    if (jailed) {
      test('every process of a box is stopped when the outer bubblewrap is killed', () =>
        assertEndsWhenKilled(({ record }) => only(childrenOf(record.pid))));
      test('every process of a box is stopped when pid 1 of the box is killed', () =>
        assertEndsWhenKilled(({ record }) => initPidOf(record)));
    }

    test('processes of a box are chosen by a switch: they are awaited until they have nothing left to do, or killed', async () => {
      const box = await startGuest(slots);
      const script = "while (!require('fs').existsSync('stop')); setInterval(() => {}, 1_000_000)";
      // The second process has the switch inside of another one, and as a second value.
      await runInGuest(
        box,
        `const start = (...args) => require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(script)}, '--', ...args], { cwd: ${JSON.stringify(box.folderInBox)}, stdio: 'ignore' });
        memory.child = start('--role=busy');
        memory.other = start('--agent=x --role=busy y', '--role=other', '--role=busy');
        memory.exited = new Promise(resolve => memory.child.once('exit', (_, signal) => resolve(signal)))`,
      );
      await assert.rejects(box.waitUntilAsleep('--role=busy', SHORT_WAIT_MS), /gave up .* to be asleep/);
      await box.waitUntilAsleep('--role=bus', SHORT_WAIT_MS);
      writeFileSync(join(box.folder, 'stop'), '');
      await box.waitUntilAsleep('--role=busy', WAIT_TIMEOUT_MS);
      await box.kill('--role=bus', WAIT_TIMEOUT_MS);
      assert.equal(await runInGuest(box, 'return memory.child.signalCode'), null);
      await box.kill('--role=busy', WAIT_TIMEOUT_MS);
      assert.equal(await runInGuest(box, 'return memory.exited'), 'SIGKILL');
      assert.equal(await runInGuest(box, 'return memory.other.signalCode'), null);
      await assertLeavesNothing(box);
    });

    async function assertEndsWhenKilled(victim: (box: Box) => number): Promise<void> {
      const box = await startGuest(slots);
      const helperPid = await runInGuest(
        box,
        "return require('child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']).pid",
      );
      assert.equal(typeof helperPid, 'number');
      const remainingProcesses = () => leftoversOf(dataDir, box.session).filter(left => left.startsWith('process'));
      assert.notDeepEqual(remainingProcesses(), []);
      process.kill(victim(box), 'SIGKILL');
      assert.equal((await waitUntilGone(box)).why, 'killed');
      assert.deepEqual(remainingProcesses(), []);
      await assertLeavesNothing(box);
    }

    test('a box is stopped at its maximum lifetime without action by the server', async () => {
      // On a slow machine, a box may reach its maximum lifetime before its start completes. The next attempt has a
      // longer lifetime.
      for (const lifetimeMs of [700, 7_000, 40_000]) {
        const session = newSession();
        const options = startOptions(session, undefined, lifetimeMs);
        const pendingStart = slots.start(options, AbortSignal.timeout(START_TIMEOUT_MS));
        const box = await pendingStart.catch(error => assert.ok(isFault(error, 'box_start_failed'), String(error)));
        if (box) assert.equal((await waitUntilGone(box)).why, 'killed');
        await box?.close();
        assert.deepEqual(leftoversOf(dataDir, session), []);
        if (box) return;
      }
      assert.fail('no box started within its lifetime');
    });

    // ---- limits -----------------------------------------------------------------------------------------------------

    test('a box whose session folder exceeds its size limit is stopped', async () => {
      const limitedSlots = await open({ diskBytes: 64 * MIB });
      const box = await startGuest(limitedSlots);
      const write = (name: string, bytes: number) =>
        runInGuest(
          box,
          `require('fs').writeFileSync(${JSON.stringify(join(box.folderInBox, name))}, Buffer.alloc(${bytes}, 1)); return 'written'`,
        );
      // Writes one byte after a hole in a sparse file, so that the file is large but uses little disk space.
      const sparseWriteScript = `const fs = require('fs'); const file = fs.openSync(${JSON.stringify(join(box.folderInBox, 'too-large'))}, 'w');
        fs.writeSync(file, 'x', ${65 * MIB})`;
      await assert.rejects(runInGuest(box, sparseWriteScript), /EFBIG/);
      // The box may be killed before the last response.
      for (const name of ['a', 'b', 'c']) await Promise.race([write(name, 30 * MIB), box.whenGone]).catch(() => {});
      const end = await waitUntilGone(box);
      assert.equal(end.why, 'disk_limit');
      assert.match(end.detail, /bytes/);
      await assertLeavesNothing(box);
      await limitedSlots.close();
    });

    if (jailed)
      test('the number of processes in a box is limited', async () => {
        const limitedSlots = await open({ pids: 100 });
        const box = await startGuest(limitedSlots);
        const code = `
          const { spawn } = require('child_process');
          const started = [];
          for (let n = 0; n < 60; n++) {
            const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
            const failed = await new Promise(done => { child.once('error', e => done(e.code)); child.once('spawn', () => setTimeout(done, 30)); });
            if (failed) return failed;
            started.push(child);
          }
          return 'no end to it'`;
        assert.equal(await Promise.race([runInGuest(box, code), box.whenGone]).catch(String), 'EAGAIN');
        await assertLeavesNothing(box);
        await limitedSlots.close();
      });

    if (form === 'root')
      test('a box that exceeds its memory limit is stopped, and the reason is reported', async () => {
        const limitedSlots = await open({ memoryBytes: 200 * MIB });
        const box = await startGuest(limitedSlots);
        sendWithoutReply(
          box,
          'memory.kept = []; for (;;) { memory.kept.push(Buffer.alloc(8e6, 1)); await new Promise(setImmediate); }',
        );
        assert.equal((await waitUntilGone(box)).why, 'out_of_memory');
        await assertLeavesNothing(box);
        await limitedSlots.close();
      });

    if (form === 'root')
      test('cpu.idle is set for a box that keeps the CPU busy while a claimed box runs, and cleared when the load falls', async () => {
        const [calmBox, busyBox] = [await startGuest(slots), await startGuest(slots)];
        calmBox.claim(); // a box counts as calm only if a session has claimed it
        const [idleFile] = cgroupsOf(dataDir)
          .map(folder => join(folder, busyBox.session, 'cpu.idle'))
          .filter(existsSync);
        assert.ok(idleFile);
        const waitForCpuIdle = (value: string) =>
          pollUntil(
            CPU_IDLE_TIMEOUT_MS,
            `cpu.idle to be ${value}`,
            () => readFileSync(idleFile, 'utf8') === `${value}\n` || undefined,
          );
        sendWithoutReply(calmBox, workScript(5, 50));
        sendWithoutReply(busyBox, workScript(50, 0));
        await waitForCpuIdle('1');
        sendWithoutReply(busyBox, 'memory.busy = false');
        await waitForCpuIdle('0');
        for (const box of [calmBox, busyBox]) await assertLeavesNothing(box);
      });

    if (jailed)
      test('the memory of a page is limited without stopping the browser', async () => {
        const limitedSlots = await open({ memoryBytes: 500 * MIB });
        const box = await limitedSlots.start(
          startOptions(newSession(), chromium),
          AbortSignal.timeout(START_TIMEOUT_MS),
        );
        const outcome = Promise.withResolvers<string>();
        const onEvent = (method: string): void =>
          method === 'Inspector.targetCrashed' ? outcome.resolve(method) : undefined;
        const pipe = new CdpPipe(box.fifoIn, box.fifoOut, onEvent);
        try {
          const { targetId } = await pipe.call('Target.createTarget', { url: 'about:blank' });
          const { sessionId } = await pipe.call('Target.attachToTarget', { targetId, flatten: true });
          await pipe.call('Inspector.enable', {}, String(sessionId));
          const expression = `let kept = []; try { for (;;) kept.push(new Uint8Array(4e7).fill(1)) } catch (error) { String(error) }`;
          // A crashed page answers late or not at all.
          pipe
            .call('Runtime.evaluate', { expression }, String(sessionId))
            .then(reply => outcome.resolve(JSON.stringify(reply.result)))
            .catch(() => {});
          const how = await withTimeout(WAIT_TIMEOUT_MS, 'the page to be stopped', () => outcome.promise);
          assert.match(how, form === 'root' ? /targetCrashed/ : /targetCrashed|allocation failed/);
          assert.match(String((await pipe.call('Browser.getVersion')).product), /Chrome/);
        } finally {
          pipe.close();
        }
        await assertLeavesNothing(box);
        await limitedSlots.close();
      });

    // ---- the jail seen from inside --------------------------------------------------------------------------------------

    if (jailed) {
      test('a box has a minimal root file system and sees only its own processes', async () => {
        const box = await startGuest(slots);
        const root = await runInGuest(box, "return require('fs').readdirSync('/').sort()");
        const programFolder = process.execPath.split('/')[1] ?? '';
        const expectedFolders = new Set([
          'dev',
          'etc',
          'guest',
          'lib',
          'lib64',
          'proc',
          'run',
          'session',
          'tmp',
          'usr',
          ...(existsSync(FONT_CACHE) ? ['var'] : []),
          programFolder,
        ]);
        assert.deepEqual(root, [...expectedFolders].sort());
        assert.deepEqual(
          await runInGuest(
            box,
            "return require('fs').readdirSync('/usr').filter(name => !name.startsWith('lib')).sort()",
          ).then(withoutLocal),
          ['share'],
        );
        const pids = await runInGuest(
          box,
          "return require('fs').readdirSync('/proc').filter(name => /^\\d+$/.test(name)).map(Number)",
        );
        assert.ok(Array.isArray(pids) && pids.every(pid => pid < 100), `the box sees pids of this machine: ${pids}`);
        assert.equal(await runInGuest(box, "return require('os').hostname()"), 'session');
        const environment = await runInGuest(box, 'return Object.keys(process.env).sort()');
        assert.deepEqual(environment, ['HOME', 'LANG', 'PATH', 'PWD', 'TMPDIR', 'TZ']);
        for (const path of [
          '/etc/passwd',
          '/etc/shadow',
          '/root',
          '/home',
          '/sys',
          '/bin',
          '/usr/bin',
          '/run/berth',
          dataDir,
        ])
          assert.equal(await runInGuest(box, `return require('fs').existsSync(${JSON.stringify(path)})`), false, path);
        await assertLeavesNothing(box);
      });

      test('in a box, the time zone is UTC, and the font cache is readable but not writable', async () => {
        const box = await startGuest(slots);
        assert.equal(await runInGuest(box, 'return process.env.TZ'), 'UTC');
        const fontCacheScript = `return require('fs').existsSync('${FONT_CACHE}') ? require('fs').readdirSync('${FONT_CACHE}').sort() : []`;
        const cacheFiles = existsSync(FONT_CACHE) ? readdirSync(FONT_CACHE).sort() : [];
        assert.deepEqual(await runInGuest(box, fontCacheScript), cacheFiles);
        await assert.rejects(
          runInGuest(box, `require('fs').writeFileSync('${FONT_CACHE}/x', 'x')`),
          /EROFS|EACCES|ENOENT/,
        );
        await assertLeavesNothing(box);
      });

      test('a box has no capabilities and no way to gain privileges', async () => {
        const box = await startGuest(slots);
        const status = String(await runInGuest(box, "return require('fs').readFileSync('/proc/self/status', 'utf8')"));
        for (const set of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'])
          assert.match(status, new RegExp(`^Cap${set}:\\t0+$`, 'm'));
        assert.match(status, /^NoNewPrivs:\t1$/m);
        const outsideStatus = readFileSync(`/proc/${programPidOf(box.record, true)}/status`, 'utf8');
        assert.match(outsideStatus, /^CapEff:\t0+$/m);
        const uid = Number(/^Uid:\t(\d+)/m.exec(outsideStatus)?.[1]);
        if (form === 'root') assert.ok(uid >= 10_000, `runs as uid ${uid}`);
        else assert.equal(uid, process.getuid?.());
        await assertLeavesNothing(box);
      });

      test('in a box, only the session folder and size-limited folders in memory are writable', async () => {
        const box = await startGuest(slots);
        for (const path of [
          '/x',
          '/dev/x',
          '/usr/x',
          '/usr/lib/x',
          '/etc/x',
          '/etc/fonts/x',
          '/guest/x',
          '/tmp/.uploads/x',
          '/proc/sys/kernel/x',
        ])
          await assert.rejects(
            runInGuest(box, `require('fs').writeFileSync('${path}', 'x')`),
            /EROFS|EACCES|ENOENT/,
            path,
          );
        await runInGuest(box, "require('fs').writeFileSync('/session/x', 'x')");
        assert.equal(readFileSync(join(box.folder, 'x'), 'utf8'), 'x');
        await assert.rejects(
          runInGuest(box, "require('fs').writeFileSync('/tmp/x', Buffer.alloc(300 * 1024 ** 2))"),
          /ENOSPC/,
        );
        await runInGuest(box, "require('fs').rmSync('/tmp/x'); return 0");
        await assert.rejects(
          runInGuest(box, "require('fs').writeFileSync('/run/x', Buffer.alloc(2 * 1024 ** 2))"),
          /ENOSPC/,
        );
        await assertLeavesNothing(box);
      });

      test('uploads are readable in the box but not writable', async () => {
        const box = await startGuest(slots);
        writeFileSync(join(box.notes, '../uploads/file.txt'), 'uploaded', { mode: 0o644 });
        assert.equal(
          await runInGuest(box, "return require('fs').readFileSync('/tmp/.uploads/file.txt', 'utf8')"),
          'uploaded',
        );
        await assert.rejects(
          runInGuest(box, "require('fs').writeFileSync('/tmp/.uploads/file.txt', 'x')"),
          /EROFS|EACCES/,
        );
        await assertLeavesNothing(box);
      });

      test('a box has a loopback interface and an interface without routes, and no access to the network of this machine', async () => {
        const server = await listen();
        const interfacesBefore = readdirSync('/sys/class/net');
        const box = await startGuest(slots);
        assert.deepEqual(
          readdirSync('/sys/class/net'),
          interfacesBefore,
          'the box adds no network interface to this machine',
        );
        const addressesScript =
          "return Object.entries(require('os').networkInterfaces()).map(([name, all]) => [name, all.map(one => one.address)])";
        const [loopback, other, ...more] = (await runInGuest(box, addressesScript)) as [string, string[]][];
        assert.equal(loopback?.[0], 'lo');
        assert.deepEqual([other, more], [['eth0', ['192.0.2.1']], []]);
        for (const to of ['192.0.2.2', '255.255.255.255', '224.0.0.251', '169.254.169.254', 'ff02::fb', '2001:db8::1'])
          assert.match(
            String(await runInGuest(box, datagramScript(to))),
            /ENETUNREACH|EHOSTUNREACH|EACCES|EADDRNOTAVAIL|EINVAL/,
            to,
          );
        await assert.rejects(runInGuest(box, connectScript('192.0.2.1', portOf(server))), /ECONNREFUSED/);
        await assert.rejects(runInGuest(box, connectScript('192.0.2.1', box.egressPort)), /ECONNREFUSED/);
        const routes = String(await runInGuest(box, "return require('fs').readFileSync('/proc/net/route', 'utf8')"));
        assert.equal(routes.trim().split('\n').length, 1, routes);
        const v6 = String(await runInGuest(box, "return require('fs').readFileSync('/proc/net/ipv6_route', 'utf8')"));
        assert.ok(
          v6
            .trim()
            .split('\n')
            .every(line => line.endsWith(' lo')),
          v6,
        );
        await assert.rejects(runInGuest(box, connectScript('127.0.0.1', portOf(server))), /ECONNREFUSED/);
        server.close();
        await assertLeavesNothing(box);
      });

      test('a box can neither see the files of another box nor connect to its listeners', async () => {
        const [one, other] = await Promise.all([startGuest(slots), startGuest(slots)]);
        await runInGuest(
          one,
          "require('fs').writeFileSync('/session/mine', 'x'); memory.server = require('net').createServer().listen(5000, '127.0.0.1'); return 0",
        );
        assert.equal(await runInGuest(other, "return require('fs').existsSync('/session/mine')"), false);
        await assert.rejects(runInGuest(other, connectScript('127.0.0.1', 5000)), /ECONNREFUSED/);
        await assert.rejects(
          runInGuest(other, `return require('fs').readdirSync(${JSON.stringify(one.folder)})`),
          /ENOENT/,
        );
        const uids = [one, other].map(
          box => /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${programPidOf(box.record, true)}/status`, 'utf8'))?.[1],
        );
        assert.equal(new Set(uids).size, form === 'root' ? 2 : 1);
        await Promise.all([assertLeavesNothing(one), assertLeavesNothing(other)]);
      });
    }

    test('a hostile folder is removed completely without following its links', async () => {
      const box = await startGuest(slots);
      const victim = join(dataDir, 'victim');
      writeFileSync(victim, 'still here');
      await runInGuest(box, hostileFolderScript(box.folderInBox, victim, dataDir));
      await assertLeavesNothing(box);
      assert.equal(readFileSync(victim, 'utf8'), 'still here');
    });

    // ---- restarts of the server -------------------------------------------------------------------------------------

    test('a running box is adopted with its memory intact after the server was killed', async () => {
      const keeper = await startKeeper(form, dataDir);
      await runInGuest(keeper, "memory.seen = 'before the kill'; return 0");
      await keeper.kill();
      assert.ok(isAlive(keeper.record));
      const box = await slots.adopt(keeper.session, keeper.record, AbortSignal.timeout(START_TIMEOUT_MS));
      assert.ok(box);
      assert.equal(await runInGuest(box, 'return memory.seen'), 'before the kill');
      box.egress.on('connection', (socket: Socket) => socket.end('from the next server'));
      assert.equal(await runInGuest(box, connectScript('127.0.0.1', box.egressPort)), 'from the next server');
      await assert.rejects(
        slots.adopt(keeper.session, keeper.record, AbortSignal.timeout(START_TIMEOUT_MS)),
        /already has a box/,
      );
      await assertLeavesNothing(box);
      assert.deepEqual(await waitUntilGone(box), { why: 'closed', detail: 'closed by the server' });
    });

    test('a browser is adopted with its pages after the server was killed, and can load more pages', async () => {
      const keeper = await startKeeper(form, dataDir, 'chromium');
      const firstPipe = new CdpPipe(keeper.fifoIn, keeper.fifoOut);
      const { targetId } = await firstPipe.call('Target.createTarget', { url: 'about:blank' });
      const { sessionId } = await firstPipe.call('Target.attachToTarget', { targetId, flatten: true });
      await firstPipe.call('Runtime.evaluate', { expression: "window.seen = 'before the kill'" }, String(sessionId));
      firstPipe.close();
      await keeper.kill();
      const box = await slots.adopt(keeper.session, keeper.record, AbortSignal.timeout(START_TIMEOUT_MS));
      assert.ok(box);
      box.egress.on('connection', (socket: Socket) => serveHttp(socket));
      const pipe = new CdpPipe(box.fifoIn, box.fifoOut);
      const seen = await pipe.call('Runtime.evaluate', { expression: 'window.seen' }, String(sessionId));
      assert.match(JSON.stringify(seen), /before the kill/);
      const { errorText } = await pipe.call('Page.navigate', { url: 'http://page.invalid/' }, String(sessionId));
      assert.equal(errorText, undefined);
      pipe.close();
      await assertLeavesNothing(box);
    });

    test('the end of an adopted box is reported', async () => {
      const keeper = await startKeeper(form, dataDir);
      await keeper.kill();
      const box = await slots.adopt(keeper.session, keeper.record, AbortSignal.timeout(START_TIMEOUT_MS));
      assert.ok(box);
      sendWithoutReply(box, 'process.exit(0)');
      assert.equal((await waitUntilGone(box)).why, 'exited');
      await assertLeavesNothing(box);
    });

    test('a detached box can be adopted again in the same process', async () => {
      const box = await startGuest(slots);
      await box.abandon();
      const adoptedBox = await slots.adopt(box.session, box.record, AbortSignal.timeout(START_TIMEOUT_MS));
      assert.ok(adoptedBox);
      assert.equal(await runInGuest(adoptedBox, 'return 1'), 1);
      await assertLeavesNothing(adoptedBox);
    });

    test('another process with the same pid is neither adopted nor killed', async () => {
      const box = await startGuest(slots);
      const { record } = box;
      await box.abandon();
      // The kernel records start times in units of 1/100 s. A process that started in the same tick as the box would be
      // mistaken for the box.
      await pollUntil(WAIT_TIMEOUT_MS, 'the next tick', () => ticksNow() > Number(record.startTicks) + 1 || undefined);
      const bystander = spawn('sleep', ['60'], { stdio: 'ignore' });
      const bystanderProcess = findProcess(bystander.pid ?? 0);
      assert.ok(bystanderProcess);
      for (const wrongFields of [
        { startTicks: `${Number(record.startTicks) + 1}` },
        { bootId: 'another boot' },
        { pid: bystanderProcess.pid },
      ])
        assert.equal(
          await slots.adopt(box.session, { ...record, ...wrongFields }, AbortSignal.timeout(START_TIMEOUT_MS)),
          undefined,
        );
      assert.deepEqual(await slots.sweep(new Set()), [box.session]);
      assert.ok(isAlive(bystanderProcess));
      bystander.kill('SIGKILL');
      assert.deepEqual(leftoversOf(dataDir, box.session), []);
    });

    test('a sweep removes unowned boxes, and nothing else', async () => {
      const lostKeeper = await startKeeper(form, dataDir);
      await lostKeeper.kill();
      const keptKeeper = await startKeeper(form, dataDir);
      await keptKeeper.kill();
      const runningBox = await startGuest(slots);
      assert.deepEqual(await slots.sweep(new Set([keptKeeper.session])), [lostKeeper.session]);
      assert.deepEqual(leftoversOf(dataDir, lostKeeper.session), []);
      assert.equal(await runInGuest(keptKeeper, 'return 1'), 1);
      assert.equal(await runInGuest(runningBox, 'return 1'), 1);
      await runningBox.close();
      assert.deepEqual(await slots.sweep(new Set()), [keptKeeper.session]);
      assert.deepEqual(leftoversOf(dataDir, keptKeeper.session), []);
    });

    test('a sweep removes a box after its server and then its leader were killed', async () => {
      const keeper = await startKeeper(form, dataDir);
      await keeper.kill();
      process.kill(keeper.record.pid, 'SIGKILL');
      await pollUntil(WAIT_TIMEOUT_MS, 'the leader to die', () => !isAlive(keeper.record) || undefined);
      assert.equal(await slots.adopt(keeper.session, keeper.record, AbortSignal.timeout(START_TIMEOUT_MS)), undefined);
      assert.deepEqual(await slots.sweep(new Set()), [keeper.session]);
      assert.deepEqual(leftoversOf(dataDir, keeper.session), []);
    });

    test('the helper process that opens the listener of a box exits afterwards', async () => {
      const box = await startGuest(slots);
      const remainingProcesses = () => leftoversOf(dataDir, box.session).filter(left => left.startsWith('process'));
      // The remaining processes are the leader and the program. In a jail, they are the leader, the outer bubblewrap
      // and the inner bubblewrap.
      await pollUntil(
        WAIT_TIMEOUT_MS,
        'the helper to exit',
        () => remainingProcesses().length === (jailed ? 3 : 2) || undefined,
      );
      await assertLeavesNothing(box);
    });
  });
}

// ---- the server process that tests kill -----------------------------------------------------------------------------

interface Keeper {
  readonly session: SessionId;
  readonly record: BoxRecord;
  readonly fifoIn: string;
  readonly fifoOut: string;
  kill(): Promise<void>;
}

async function startKeeper(form: Form, dataDir: string, program: 'guest' | 'chromium' = 'guest'): Promise<Keeper> {
  const file = join(import.meta.dirname, 'slots-keeper.ts');
  const child = spawn(process.execPath, [file, form, dataDir, program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const line = await withTimeout(START_TIMEOUT_MS, 'the keeper to start a box', () => firstLine(child));
  const keeperFields: unknown = JSON.parse(line);
  assert.ok(isObject(keeperFields));
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return { ...(keeperFields as unknown as Omit<Keeper, 'kill'>), kill };
}

async function firstLine(child: ChildProcess): Promise<string> {
  let text = '';
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk);
    if (text.includes('\n')) return text;
  }
  throw new Error('slots-keeper.ts ended without output');
}

// ---- code for the guest ---------------------------------------------------------------------------------------------------

/** Alternates between using the processor and pausing until `memory.busy` is false. */
const workScript = (workMs: number, pauseMs: number): string => `
  memory.busy = true;
  while (memory.busy) {
    const end = Date.now() + ${workMs};
    while (Date.now() < end);
    await new Promise(resolve => setTimeout(resolve, ${pauseMs}));
  }`;

const connectScript = (host: string, port: number): string => `
  const socket = require('net').connect({ host: '${host}', port: ${port} });
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text`;

/** Sends one datagram to the address, and returns the error code, or `sent`. */
const datagramScript = (address: string): string => `
  const socket = require('dgram').createSocket(${JSON.stringify(address)}.includes(':') ? 'udp6' : 'udp4');
  return new Promise(done => socket.send('x', 9, ${JSON.stringify(address)}, error => done(error ? error.code : 'sent')))
    .finally(() => socket.close())`;

/**
 * Fills the folder with hostile entries: a path longer than the limit of the kernel, names that begin with a hyphen or
 * are not valid UTF-8, links to the outside, and a folder without permissions.
 */
const hostileFolderScript = (folder: string, victim: string, outsideFolder: string): string => `
  const fs = require('fs');
  process.chdir(${JSON.stringify(folder)});
  fs.symlinkSync(${JSON.stringify(victim)}, 'link');
  fs.symlinkSync(${JSON.stringify(outsideFolder)}, 'linked-folder');
  fs.writeFileSync(Buffer.from([0xff, 0xfe, 0x0a, 0x2d]), 'odd');
  fs.writeFileSync('-rf', 'odd');
  fs.mkdirSync('locked'); fs.writeFileSync('locked/file', ''); fs.chmodSync('locked', 0);
  for (let depth = 0; depth < 60; depth++) { const name = 'd'.repeat(200); fs.mkdirSync(name); process.chdir(name); }
  process.chdir('/');
  return 0`;

// ---- helpers --------------------------------------------------------------------------------------------------------

/**
 * Returns the pid of the process that is pid 1 in the box. The chain of processes is `timeout` -> bubblewrap ->
 * bubblewrap (pid 1 of the box) -> the program.
 */
function initPidOf(record: BoxRecord): number {
  const initPid = childrenOf(record.pid)
    .flatMap(child => childrenOf(child))
    .find(pid => innermostPid(pid) === 1);
  assert.ok(initPid);
  return initPid;
}

const programPidOf = (record: BoxRecord, jailed: boolean): number =>
  only(childrenOf(jailed ? initPidOf(record) : record.pid));

function only(pids: readonly number[]): number {
  const [pid] = pids;
  assert.ok(pid !== undefined && pids.length === 1, `expected one process, got ${pids}`);
  return pid;
}

const withoutLocal = (names: unknown): unknown =>
  Array.isArray(names) ? names.filter(name => name !== 'local') : names;

function serveHttp(socket: Socket): void {
  socket.on('error', () => {});
  socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok'));
}

async function listen(): Promise<Server> {
  const server = createServer(socket => socket.end('this machine'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  assert.ok(typeof address === 'object' && address);
  return address.port;
}
