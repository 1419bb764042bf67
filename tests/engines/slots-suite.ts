// What every form of the slots promises, and what only a jail does. Run on each form by slots.test.ts and
// slots-rootless.test.ts; the attacks of a browser's client are in tests/attacks.
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
import { until, within } from '../../server/kit/wait.ts';
import {
  cgroupsOf,
  chromium,
  leftOf,
  makeDataDir,
  newSession,
  openLab,
  removeDataDir,
  START_WITHIN_MS,
  startGuest,
  tell,
  throwIn,
  wishFor,
} from './slots-lab.ts';

/** Hundredths of a second since the machine started, as /proc/PID/stat counts them. */
const ticksNow = (): number => 100 * Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);

const MIB = 1024 ** 2;
const GONE_WITHIN_MS = 60_000;
const SCHEDULED_WITHIN_MS = 30_000;

export function slotsSuite(form: Form): void {
  const jailed = form !== 'process';
  let dataDir = '';
  let slots: Slots;
  const opened: Slots[] = [];

  /** Closed at the end of the suite also where a test fails. */
  const open = async (...more: [limits?: Partial<Limits>, size?: number]): Promise<Slots> => {
    const slots = await openLab(form, dataDir, ...more);
    opened.push(slots);
    return slots;
  };

  const gone = (box: Box) => within(GONE_WITHIN_MS, 'the box to be gone', () => box.gone);
  const leavesNothing = async (box: Box): Promise<void> => {
    await box.close();
    assert.deepEqual(leftOf(dataDir, box.session), []);
  };

  describe(`slots, form ${form}`, { concurrency: 1 }, () => {
    before(async () => {
      dataDir = await makeDataDir();
      slots = await open();
    });
    after(async () => {
      for (const each of opened) await each.close();
      assert.deepEqual(cgroupsOf(dataDir), []);
      await removeDataDir(dataDir);
    });

    test('has the form that it was opened for', () => {
      assert.equal(slots.form, form);
      assert.equal(slots.isolation, jailed ? 'slot' : 'process');
      if (form === 'process') assert.equal(slots.missing.length, 5);
      if (form === 'rootless') assert.match(slots.missing.join(), /user ids/);
    });

    // ---- start, speak, close ------------------------------------------------------------------------------------------

    test('a box starts, speaks over its FIFOs, and leaves nothing when closed', async () => {
      const box = await startGuest(slots);
      assert.equal(await tell(box, 'return 6 * 7'), 42);
      assert.equal(box.record.form, form);
      await box.close();
      await box.close();
      assert.deepEqual(await gone(box), { why: 'closed', detail: 'closed by the server' });
      assert.deepEqual(leftOf(dataDir, box.session), []);
    });

    test('connections to the egress address arrive at our listener', async () => {
      const box = await startGuest(slots);
      box.egress.on('connection', (socket: Socket) => socket.end('from the server'));
      assert.equal(await tell(box, readFrom('127.0.0.1', box.egressPort)), 'from the server');
      await leavesNothing(box);
    });

    test('two boxes run side by side; a third beyond the size is refused', async () => {
      const small = await open({}, 2);
      const [one, other] = await Promise.all([startGuest(small), startGuest(small)]);
      assert.notEqual(one.record.slot, other.record.slot);
      await assert.rejects(startGuest(small), error => isFault(error, 'no_free_slot'));
      await one.close();
      const third = await startGuest(small);
      assert.equal(third.record.slot, one.record.slot);
      await small.close();
      for (const box of [one, other, third]) assert.deepEqual(leftOf(dataDir, box.session), []);
    });

    test('a program that is not there is a fault with what the system said, and leaves nothing', async () => {
      const session = newSession();
      const nowhere = { executable: '/usr/lib/no-such-browser', args: [], mounts: [] };
      const starting = slots.start(
        wishFor(session, () => nowhere),
        AbortSignal.timeout(START_WITHIN_MS),
      );
      await assert.rejects(
        starting,
        error => isFault(error, 'box_start_failed') && /no-such-browser/.test(error.message),
      );
      assert.deepEqual(leftOf(dataDir, session), []);
    });

    test('a program starts only when its folder is filled, however long that takes', async () => {
      const session = newSession();
      const fill: BoxRequest['fill'] = async ({ folder }) => {
        await until(
          GONE_WITHIN_MS,
          'the rest to be made',
          () => existsSync(join(folder, '../notes/in')) || undefined,
          1,
        );
        await new Promise(resolve => setTimeout(resolve, 200));
        writeFileSync(join(folder, 'filled'), 'in time', { mode: 0o644 });
      };
      const box = await slots.start({ ...wishFor(session), fill }, AbortSignal.timeout(START_WITHIN_MS));
      const path = `${box.folderInBox}/filled`;
      assert.equal(
        await tell(box, `return require('node:fs').readFileSync(${JSON.stringify(path)}, 'utf8')`),
        'in time',
      );
      await leavesNothing(box);
    });

    test('a folder that cannot be filled is the reason why nothing starts, and leaves nothing', async () => {
      const session = newSession();
      const fill = async (): Promise<void> => {
        await new Promise(resolve => setTimeout(resolve, 20));
        throw new Error('there is nothing to fill it with');
      };
      const starting = slots.start({ ...wishFor(session), fill }, AbortSignal.timeout(START_WITHIN_MS));
      await assert.rejects(starting, /there is nothing to fill it with/);
      assert.deepEqual(leftOf(dataDir, session), []);
    });

    test('a start that is called off leaves nothing', async () => {
      const session = newSession();
      const control = new AbortController();
      const starting = slots.start(wishFor(session), control.signal);
      const folder = join(dataDir, 'sessions', session);
      await until(GONE_WITHIN_MS, 'the start to be under way', () => existsSync(join(folder, 'notes')) || undefined, 1);
      control.abort(new Error('called off'));
      await assert.rejects(starting, /called off/);
      assert.deepEqual(leftOf(dataDir, session), []);
    });

    // ---- how it ends --------------------------------------------------------------------------------------------------

    test('a program that exits says so, with its code', async () => {
      const box = await startGuest(slots);
      throwIn(box, 'process.exit(7)');
      assert.deepEqual(await gone(box), { why: 'exited', detail: 'exited with code 7' });
      await leavesNothing(box);
    });

    test('what the program wrote last to its error output is kept', async () => {
      const box = await startGuest(slots);
      throwIn(box, "console.error('the last words'); process.exitCode = 1; setTimeout(() => process.exit(), 20)");
      await gone(box);
      assert.match(box.stderrTail(), /the last words/);
      await leavesNothing(box);
    });

    test('killing the leader ends everything', () => endsWhenKilled(box => box.record.pid));

    test('killing the program ends everything', () => endsWhenKilled(box => programOf(box.record, jailed)));

    if (jailed) {
      test('killing bubblewrap outside ends everything', () =>
        endsWhenKilled(({ record }) => only(childrenOf(record.pid))));
      test("killing the box's pid 1 ends everything", () => endsWhenKilled(({ record }) => firstOf(record)));
    }

    async function endsWhenKilled(victim: (box: Box) => number): Promise<void> {
      const box = await startGuest(slots);
      const helper = await tell(
        box,
        "return require('child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']).pid",
      );
      assert.equal(typeof helper, 'number');
      process.kill(victim(box), 'SIGKILL');
      assert.equal((await gone(box)).why, 'killed');
      assert.deepEqual(
        leftOf(dataDir, box.session).filter(left => left.startsWith('process')),
        [],
      );
      await leavesNothing(box);
    }

    test('the longest lifetime ends it, whoever is left', async () => {
      const session = newSession();
      const starting = slots.start(wishFor(session, undefined, 700), AbortSignal.timeout(START_WITHIN_MS));
      // On a slow machine it may be over before the start is.
      const box = await starting.catch(error => assert.ok(isFault(error, 'box_start_failed'), String(error)));
      if (box) assert.equal((await gone(box)).why, 'killed');
      await box?.close();
      assert.deepEqual(leftOf(dataDir, session), []);
    });

    // ---- bounds -------------------------------------------------------------------------------------------------------

    test('a session folder that grows past its bound ends the box', async () => {
      const small = await open({ diskBytes: 64 * MIB });
      const box = await startGuest(small);
      const write = (name: string, bytes: number) =>
        tell(
          box,
          `require('fs').writeFileSync(${JSON.stringify(join(box.folderInBox, name))}, Buffer.alloc(${bytes}, 1)); return 'written'`,
        );
      // Behind a hole, so that nothing is there to be measured.
      const beyond = `const fs = require('fs'); const file = fs.openSync(${JSON.stringify(join(box.folderInBox, 'too-large'))}, 'w');
        fs.writeSync(file, 'x', ${65 * MIB})`;
      await assert.rejects(tell(box, beyond), /EFBIG/);
      // The kill may come before the last answer.
      for (const name of ['a', 'b', 'c']) await Promise.race([write(name, 30 * MIB), box.gone]).catch(() => {});
      const end = await gone(box);
      assert.equal(end.why, 'disk_limit');
      assert.match(end.detail, /bytes/);
      await leavesNothing(box);
      await small.close();
    });

    if (jailed)
      test('the number of processes is bounded, and the server does not notice', async () => {
        const small = await open({ pids: 100 });
        const box = await startGuest(small);
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
        assert.equal(await Promise.race([tell(box, code), box.gone]).catch(String), 'EAGAIN');
        await leavesNothing(box);
        await small.close();
      });

    if (form === 'root')
      test('a box that needs more memory than it has is ended, and the reason is told', async () => {
        const small = await open({ memoryBytes: 200 * MIB });
        const box = await startGuest(small);
        throwIn(
          box,
          'memory.kept = []; for (;;) { memory.kept.push(Buffer.alloc(8e6, 1)); await new Promise(setImmediate); }',
        );
        assert.equal((await gone(box)).why, 'out_of_memory');
        await leavesNothing(box);
        await small.close();
      });

    if (form === 'root')
      test('a box that keeps the processor busy is scheduled as idle, until it is calm again', async () => {
        const box = await startGuest(slots);
        const [idle] = cgroupsOf(dataDir)
          .map(folder => join(folder, box.session, 'cpu.idle'))
          .filter(existsSync);
        assert.ok(idle);
        const becomes = (value: string) =>
          until(
            SCHEDULED_WITHIN_MS,
            `cpu.idle to be ${value}`,
            () => readFileSync(idle, 'utf8') === `${value}\n` || undefined,
          );
        throwIn(
          box,
          'memory.busy = true; while (memory.busy) { const end = Date.now() + 50; while (Date.now() < end); await new Promise(setImmediate); }',
        );
        await becomes('1');
        throwIn(box, 'memory.busy = false');
        await becomes('0');
        await leavesNothing(box);
      });

    if (jailed)
      test('a page that needs more memory than there is loses its renderer, or its wish; the browser lives on', async () => {
        const small = await open({ memoryBytes: 500 * MIB });
        const box = await small.start(wishFor(newSession(), chromium), AbortSignal.timeout(START_WITHIN_MS));
        const crashed = Promise.withResolvers<string>();
        const onEvent = (method: string): void =>
          method === 'Inspector.targetCrashed' ? crashed.resolve(method) : undefined;
        const pipe = new CdpPipe(box.fifoIn, box.fifoOut, onEvent);
        try {
          const { targetId } = await pipe.call('Target.createTarget', { url: 'about:blank' });
          const { sessionId } = await pipe.call('Target.attachToTarget', { targetId, flatten: true });
          await pipe.call('Inspector.enable', {}, String(sessionId));
          const expression = `let kept = []; try { for (;;) kept.push(new Uint8Array(4e7).fill(1)) } catch (error) { String(error) }`;
          // A page that crashed does not answer any more, or late.
          pipe
            .call('Runtime.evaluate', { expression }, String(sessionId))
            .then(answer => crashed.resolve(JSON.stringify(answer.result)))
            .catch(() => {});
          const how = await within(GONE_WITHIN_MS, 'the page to be stopped', () => crashed.promise);
          assert.match(how, form === 'root' ? /targetCrashed/ : /targetCrashed|allocation failed/);
          assert.match(String((await pipe.call('Browser.getVersion')).product), /Chrome/);
        } finally {
          pipe.close();
        }
        await leavesNothing(box);
        await small.close();
      });

    // ---- the jail seen from inside --------------------------------------------------------------------------------------

    if (jailed) {
      test('the box sees a minimal root and its own processes only', async () => {
        const box = await startGuest(slots);
        const root = await tell(box, "return require('fs').readdirSync('/').sort()");
        const program = process.execPath.split('/')[1] ?? '';
        const expected = new Set([
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
          program,
        ]);
        assert.deepEqual(root, [...expected].sort());
        assert.deepEqual(
          await tell(
            box,
            "return require('fs').readdirSync('/usr').filter(name => !name.startsWith('lib')).sort()",
          ).then(withoutLocal),
          ['share'],
        );
        const pids = await tell(
          box,
          "return require('fs').readdirSync('/proc').filter(name => /^\\d+$/.test(name)).map(Number)",
        );
        assert.ok(Array.isArray(pids) && pids.every(pid => pid < 100), `pids of this machine are seen: ${pids}`);
        assert.equal(await tell(box, "return require('os').hostname()"), 'session');
        const environment = await tell(box, 'return Object.keys(process.env).sort()');
        assert.deepEqual(environment, ['HOME', 'LANG', 'PATH', 'PWD', 'TMPDIR']);
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
          assert.equal(await tell(box, `return require('fs').existsSync(${JSON.stringify(path)})`), false, path);
        await leavesNothing(box);
      });

      test('the box has no capability, no way to more, and no door to the namespaces of others', async () => {
        const box = await startGuest(slots);
        const status = String(await tell(box, "return require('fs').readFileSync('/proc/self/status', 'utf8')"));
        for (const set of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'])
          assert.match(status, new RegExp(`^Cap${set}:\\t0+$`, 'm'));
        assert.match(status, /^NoNewPrivs:\t1$/m);
        const outside = readFileSync(`/proc/${programOf(box.record, true)}/status`, 'utf8');
        assert.match(outside, /^CapEff:\t0+$/m);
        const uid = Number(/^Uid:\t(\d+)/m.exec(outside)?.[1]);
        if (form === 'root') assert.ok(uid >= 10_000, `runs as uid ${uid}`);
        else assert.equal(uid, process.getuid?.());
        await leavesNothing(box);
      });

      test('nothing can be written but the session folder and three bounded places in memory', async () => {
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
          await assert.rejects(tell(box, `require('fs').writeFileSync('${path}', 'x')`), /EROFS|EACCES|ENOENT/, path);
        await tell(box, "require('fs').writeFileSync('/session/x', 'x')");
        assert.equal(readFileSync(join(box.folder, 'x'), 'utf8'), 'x');
        await assert.rejects(
          tell(box, "require('fs').writeFileSync('/tmp/x', Buffer.alloc(300 * 1024 ** 2))"),
          /ENOSPC/,
        );
        await tell(box, "require('fs').rmSync('/tmp/x'); return 0");
        await assert.rejects(tell(box, "require('fs').writeFileSync('/run/x', Buffer.alloc(2 * 1024 ** 2))"), /ENOSPC/);
        await leavesNothing(box);
      });

      test('uploads of ours are readable in the box, and not writable', async () => {
        const box = await startGuest(slots);
        writeFileSync(join(box.notes, '../uploads/file.txt'), 'uploaded', { mode: 0o644 });
        assert.equal(
          await tell(box, "return require('fs').readFileSync('/tmp/.uploads/file.txt', 'utf8')"),
          'uploaded',
        );
        await assert.rejects(tell(box, "require('fs').writeFileSync('/tmp/.uploads/file.txt', 'x')"), /EROFS|EACCES/);
        await leavesNothing(box);
      });

      test('the network of a box is loopback and an interface that leads nowhere, and nothing of this machine is on it', async () => {
        const server = await listen();
        const before = readdirSync('/sys/class/net');
        const box = await startGuest(slots);
        assert.deepEqual(readdirSync('/sys/class/net'), before, 'no end of it is on this machine');
        const addresses =
          "return Object.entries(require('os').networkInterfaces()).map(([name, all]) => [name, all.map(one => one.address)])";
        const [loopback, other, ...more] = (await tell(box, addresses)) as [string, string[]][];
        assert.equal(loopback?.[0], 'lo');
        assert.deepEqual([other, more], [['eth0', ['192.0.2.1']], []]);
        for (const to of ['192.0.2.2', '255.255.255.255', '224.0.0.251', '169.254.169.254', 'ff02::fb', '2001:db8::1'])
          assert.match(String(await tell(box, sendTo(to))), /ENETUNREACH|EHOSTUNREACH|EACCES|EADDRNOTAVAIL|EINVAL/, to);
        await assert.rejects(tell(box, readFrom('192.0.2.1', portOf(server))), /ECONNREFUSED/);
        await assert.rejects(tell(box, readFrom('192.0.2.1', box.egressPort)), /ECONNREFUSED/);
        const routes = String(await tell(box, "return require('fs').readFileSync('/proc/net/route', 'utf8')"));
        assert.equal(routes.trim().split('\n').length, 1, routes);
        const v6 = String(await tell(box, "return require('fs').readFileSync('/proc/net/ipv6_route', 'utf8')"));
        assert.ok(
          v6
            .trim()
            .split('\n')
            .every(line => line.endsWith(' lo')),
          v6,
        );
        await assert.rejects(tell(box, readFrom('127.0.0.1', portOf(server))), /ECONNREFUSED/);
        server.close();
        await leavesNothing(box);
      });

      test('two boxes see nothing of each other', async () => {
        const [one, other] = await Promise.all([startGuest(slots), startGuest(slots)]);
        await tell(
          one,
          "require('fs').writeFileSync('/session/mine', 'x'); memory.server = require('net').createServer().listen(5000, '127.0.0.1'); return 0",
        );
        assert.equal(await tell(other, "return require('fs').existsSync('/session/mine')"), false);
        await assert.rejects(tell(other, readFrom('127.0.0.1', 5000)), /ECONNREFUSED/);
        await assert.rejects(tell(other, `return require('fs').readdirSync(${JSON.stringify(one.folder)})`), /ENOENT/);
        const uids = [one, other].map(
          box => /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${programOf(box.record, true)}/status`, 'utf8'))?.[1],
        );
        assert.equal(new Set(uids).size, form === 'root' ? 2 : 1);
        await Promise.all([leavesNothing(one), leavesNothing(other)]);
      });
    }

    test('a hostile folder is removed whole, and nothing that its links point at', async () => {
      const box = await startGuest(slots);
      const victim = join(dataDir, 'victim');
      writeFileSync(victim, 'still here');
      await tell(box, hostileFolder(box.folderInBox, victim, dataDir));
      await leavesNothing(box);
      assert.equal(readFileSync(victim, 'utf8'), 'still here');
    });

    // ---- surviving ourselves --------------------------------------------------------------------------------------------

    test('a box outlives the SIGKILL of its server and is adopted, with its memory, by the next', async () => {
      const keeper = await startKeeper(form, dataDir);
      await tell(keeper, "memory.seen = 'before the kill'; return 0");
      await keeper.kill();
      assert.ok(isAlive(keeper.record));
      const box = await slots.adopt(keeper.session, keeper.record, AbortSignal.timeout(START_WITHIN_MS));
      assert.ok(box);
      assert.equal(await tell(box, 'return memory.seen'), 'before the kill');
      box.egress.on('connection', (socket: Socket) => socket.end('from the next server'));
      assert.equal(await tell(box, readFrom('127.0.0.1', box.egressPort)), 'from the next server');
      await assert.rejects(
        slots.adopt(keeper.session, keeper.record, AbortSignal.timeout(START_WITHIN_MS)),
        /has a box already/,
      );
      await leavesNothing(box);
      assert.deepEqual(await gone(box), { why: 'closed', detail: 'closed by the server' });
    });

    test('a browser outlives the SIGKILL of its server with its pages, and loads more through the next', async () => {
      const keeper = await startKeeper(form, dataDir, 'chromium');
      const before = new CdpPipe(keeper.fifoIn, keeper.fifoOut);
      const { targetId } = await before.call('Target.createTarget', { url: 'about:blank' });
      const { sessionId } = await before.call('Target.attachToTarget', { targetId, flatten: true });
      await before.call('Runtime.evaluate', { expression: "window.seen = 'before the kill'" }, String(sessionId));
      before.close();
      await keeper.kill();
      const box = await slots.adopt(keeper.session, keeper.record, AbortSignal.timeout(START_WITHIN_MS));
      assert.ok(box);
      box.egress.on('connection', (socket: Socket) => answerHttp(socket));
      const pipe = new CdpPipe(box.fifoIn, box.fifoOut);
      const seen = await pipe.call('Runtime.evaluate', { expression: 'window.seen' }, String(sessionId));
      assert.match(JSON.stringify(seen), /before the kill/);
      const { errorText } = await pipe.call('Page.navigate', { url: 'http://page.invalid/' }, String(sessionId));
      assert.equal(errorText, undefined);
      pipe.close();
      await leavesNothing(box);
    });

    test('an adopted box that dies is noticed', async () => {
      const keeper = await startKeeper(form, dataDir);
      await keeper.kill();
      const box = await slots.adopt(keeper.session, keeper.record, AbortSignal.timeout(START_WITHIN_MS));
      assert.ok(box);
      throwIn(box, 'process.exit(0)');
      assert.equal((await gone(box)).why, 'exited');
      await leavesNothing(box);
    });

    test('a box that was let go is adopted again in the same process', async () => {
      const box = await startGuest(slots);
      await box.abandon();
      const again = await slots.adopt(box.session, box.record, AbortSignal.timeout(START_WITHIN_MS));
      assert.ok(again);
      assert.equal(await tell(again, 'return 1'), 1);
      await leavesNothing(again);
    });

    test('another process with the same pid is not adopted and not harmed', async () => {
      const box = await startGuest(slots);
      const { record } = box;
      await box.abandon();
      // The kernel counts starts in hundredths of a second: one that began with the box would pass for it here.
      await until(GONE_WITHIN_MS, 'the next tick', () => ticksNow() > Number(record.startTicks) + 1 || undefined);
      const bystander = spawn('sleep', ['60'], { stdio: 'ignore' });
      const own = findProcess(bystander.pid ?? 0);
      assert.ok(own);
      for (const wrong of [
        { startTicks: `${Number(record.startTicks) + 1}` },
        { bootId: 'another boot' },
        { pid: own.pid },
      ])
        assert.equal(
          await slots.adopt(box.session, { ...record, ...wrong }, AbortSignal.timeout(START_WITHIN_MS)),
          undefined,
        );
      assert.deepEqual(await slots.sweep(new Set()), [box.session]);
      assert.ok(isAlive(own));
      bystander.kill('SIGKILL');
      assert.deepEqual(leftOf(dataDir, box.session), []);
    });

    test('the sweep takes away what nobody keeps, and only that', async () => {
      const lost = await startKeeper(form, dataDir);
      await lost.kill();
      const kept = await startKeeper(form, dataDir);
      await kept.kill();
      const running = await startGuest(slots);
      assert.deepEqual(await slots.sweep(new Set([kept.session])), [lost.session]);
      assert.deepEqual(leftOf(dataDir, lost.session), []);
      assert.equal(await tell(kept, 'return 1'), 1);
      assert.equal(await tell(running, 'return 1'), 1);
      await running.close();
      assert.deepEqual(await slots.sweep(new Set()), [kept.session]);
      assert.deepEqual(leftOf(dataDir, kept.session), []);
    });

    test('a box whose leader was killed after its server leaves nothing to the sweep', async () => {
      const keeper = await startKeeper(form, dataDir);
      await keeper.kill();
      process.kill(keeper.record.pid, 'SIGKILL');
      await until(GONE_WITHIN_MS, 'the leader to die', () => !isAlive(keeper.record) || undefined);
      assert.equal(await slots.adopt(keeper.session, keeper.record, AbortSignal.timeout(START_WITHIN_MS)), undefined);
      assert.deepEqual(await slots.sweep(new Set()), [keeper.session]);
      assert.deepEqual(leftOf(dataDir, keeper.session), []);
    });

    test('the helper that opens the listener does not stay', async () => {
      const box = await startGuest(slots);
      const marked = () => leftOf(dataDir, box.session).filter(left => left.startsWith('process'));
      // The leader and, in a jail, bubblewrap outside and inside.
      await until(GONE_WITHIN_MS, 'the helper to leave', () => marked().length === (jailed ? 3 : 2) || undefined);
      await leavesNothing(box);
    });
  });
}

// ---- the server to be killed ----------------------------------------------------------------------------------------------

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
  const line = await within(START_WITHIN_MS, 'the keeper to start a box', () => firstLine(child));
  const told: unknown = JSON.parse(line);
  assert.ok(isObject(told));
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return { ...(told as unknown as Omit<Keeper, 'kill'>), kill };
}

async function firstLine(child: ChildProcess): Promise<string> {
  let text = '';
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk);
    if (text.includes('\n')) return text;
  }
  throw new Error('the keeper ended without a word');
}

// ---- code for the guest ---------------------------------------------------------------------------------------------------

const readFrom = (host: string, port: number): string => `
  const socket = require('net').connect({ host: '${host}', port: ${port} });
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text`;

/** One datagram from each address of the box; says with what error. */
const sendTo = (address: string): string => `
  const socket = require('dgram').createSocket(${JSON.stringify(address)}.includes(':') ? 'udp6' : 'udp4');
  return new Promise(done => socket.send('x', 9, ${JSON.stringify(address)}, error => done(error ? error.code : 'sent')))
    .finally(() => socket.close())`;

/** Deeper than a path may be long, names that are not text, links out, a folder that nobody may enter. */
const hostileFolder = (folder: string, victim: string, outside: string): string => `
  const fs = require('fs');
  process.chdir(${JSON.stringify(folder)});
  fs.symlinkSync(${JSON.stringify(victim)}, 'link');
  fs.symlinkSync(${JSON.stringify(outside)}, 'linked-folder');
  fs.writeFileSync(Buffer.from([0xff, 0xfe, 0x0a, 0x2d]), 'odd');
  fs.writeFileSync('-rf', 'odd');
  fs.mkdirSync('locked'); fs.writeFileSync('locked/file', ''); fs.chmodSync('locked', 0);
  for (let depth = 0; depth < 60; depth++) { const name = 'd'.repeat(200); fs.mkdirSync(name); process.chdir(name); }
  process.chdir('/');
  return 0`;

// ---- small things ------------------------------------------------------------------------------------------------------------

/** `timeout` -> bubblewrap -> bubblewrap, pid 1 of the box -> the program. */
function firstOf(record: BoxRecord): number {
  const first = childrenOf(record.pid)
    .flatMap(child => childrenOf(child))
    .find(pid => innermostPid(pid) === 1);
  assert.ok(first);
  return first;
}

const programOf = (record: BoxRecord, jailed: boolean): number =>
  only(childrenOf(jailed ? firstOf(record) : record.pid));

function only(pids: readonly number[]): number {
  const [pid] = pids;
  assert.ok(pid !== undefined && pids.length === 1, `expected one process, got ${pids}`);
  return pid;
}

const withoutLocal = (names: unknown): unknown =>
  Array.isArray(names) ? names.filter(name => name !== 'local') : names;

function answerHttp(socket: Socket): void {
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
