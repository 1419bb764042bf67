// `npm run bench:fleet`: measures several hosts with one PostgreSQL. The figures are placements per second, the cost of
// a front, the time to list sessions among a million rows, the cost of the hop to the owner of a session, and the cost
// of storing contexts in a bucket. Each figure is compared with a baseline from the same run. On a noisy machine, look
// at the ratios.
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { systemClock } from '../server/kit/clock.ts';
import { Scope } from '../server/kit/scope.ts';
import { withTimeout } from '../server/kit/wait.ts';
import { makeTemporaryFolder, startForeignServer } from '../tests/engines/store-fixtures.ts';
import { addressAt } from '../tests/harness/fleet.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { liftLimits } from '../tests/harness/limits.ts';
import { startS3 } from '../tests/harness/s3.ts';
import { TestServer } from '../tests/harness/server.ts';
import { CdpConnection } from './cdp-connection.ts';
import { createFilledContext, measureSessionStart } from './contexts.ts';
import type { Round } from './fleet-placer.ts';
import { openSite } from './log-site.ts';
import { describeMachine, readMachine } from './machine.ts';
import { cpuSecondsOf, cpuSecondsWithChildren, processTreesOf } from './processes.ts';
import { type Comparison, comparisonOf, median } from './statistics.ts';

const BENCH_TIMEOUT_MS = 30 * 60_000;
const STEP_TIMEOUT_MS = 120_000;
const HOSTS = 3;
/** The number of placements per host and round. Lower than the number of slots of a host. */
const PLACEMENTS = 150;
const BATCH_ROWS = 50_000;
const LIST_LIMIT = 100;
const FEW_ROWS = 1_000;
/** The number of records in the context. Each has 16 KiB: about 16 MB in total. */
const CONTEXT_RECORDS = 1_000;
const SESSIONS_PATH = '/v1/browsers/sessions';

const PARTS = ['placements', 'creates', 'hop', 'list', 'contexts'] as const;
const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    part: { type: 'string', multiple: true, default: [...PARTS] },
  },
});
const isSelected = (part: (typeof PARTS)[number]): boolean => values.part.includes(part);
const FULL_EXTENT = {
  rounds: 11,
  creates: 101,
  lists: 101,
  rows: 1_000_000,
  blocks: 11,
  calls: 400,
  megabytes: 64,
  contexts: 15,
};
const WARM_UP_CREATES = 10;
const QUICK_EXTENT = {
  rounds: 3,
  creates: 7,
  lists: 21,
  rows: 100_000,
  blocks: 3,
  calls: 200,
  megabytes: 16,
  contexts: 5,
};
const extent = values.quick ? QUICK_EXTENT : FULL_EXTENT;

interface Figure {
  readonly name: string;
  readonly unit: string;
  readonly comparison: Comparison;
  readonly target: string;
  readonly isMet: boolean;
}

const scope = new Scope();
const database = await startForeignServer(scope);
/**
 * Placements and hosts each have their own database. A host creates its first agent key only if the database contains
 * no application, and the placers create applications.
 */
const PLACER_DATABASE_URL = database.url.reveal();
const HOSTS_DATABASE_URL = PLACER_DATABASE_URL.replace(/\/postgres$/, '/hosts');

async function connectClient(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  scope.defer(() => client.end());
  return client;
}

const placerClient = await connectClient(PLACER_DATABASE_URL);
await placerClient.query('create database hosts');
const hostsClient = await connectClient(HOSTS_DATABASE_URL);

// ---- placements ----------------------------------------------------------------------------------------------------

/** CPU seconds of the hosts and of PostgreSQL: used so far, or in one round. */
interface CpuTimes {
  readonly hosts: number;
  readonly postgres: number;
}

async function measurePlacements(): Promise<{ figure: Figure; note: string }> {
  const children: ChildProcess[] = [];
  // The placers start one after the other, because the first one creates the tables.
  for (let hostIndex = 0; hostIndex < HOSTS; hostIndex += 1) {
    const args = [PLACER_DATABASE_URL, makeTemporaryFolder(scope, 'placer')];
    const child = fork(join(import.meta.dirname, 'fleet-placer.ts'), args);
    scope.defer(() => void child.kill());
    await withTimeout(STEP_TIMEOUT_MS, 'a placer to be ready', signal => once(child, 'message', { signal }));
    children.push(child);
  }
  await placerClient.query('create table bench_bare (id bigserial primary key, at timestamptz default now())');
  const pids = children.map(({ pid = 0 }) => pid);
  const readCpuTimes = (): CpuTimes => {
    const backends = processTreesOf([database.pid]).filter(pid => pid !== database.pid);
    return { hosts: cpuSecondsOf(pids), postgres: cpuSecondsWithChildren([database.pid]) + cpuSecondsOf(backends) };
  };
  const placementCosts: CpuTimes[] = [];
  const measureRate = async (kind: Round['kind']): Promise<number> => {
    const cpuTimesBefore = readCpuTimes();
    const startMs = systemClock.monotonicMs();
    await Promise.all(
      children.map(async child => {
        const reply = withTimeout(STEP_TIMEOUT_MS, 'a round to end', signal => once(child, 'message', { signal }));
        child.send({ kind, count: PLACEMENTS } satisfies Round);
        const [answer] = await reply;
        if (typeof answer.ms !== 'number') throw new Error(String(answer.error));
      }),
    );
    const rate = (HOSTS * PLACEMENTS * 1000) / (systemClock.monotonicMs() - startMs);
    const cpuTimesAfter = readCpuTimes();
    if (kind === 'place')
      placementCosts.push({
        hosts: cpuTimesAfter.hosts - cpuTimesBefore.hosts,
        postgres: cpuTimesAfter.postgres - cpuTimesBefore.postgres,
      });
    await placerClient.query('delete from sessions');
    await placerClient.query('vacuum analyze sessions, session_events, hosts');
    return rate;
  };
  const [bareRates, placementRates]: [number[], number[]] = [[], []];
  for (const kind of ['bare', 'place'] as const) await measureRate(kind);
  for (let round = 0; round < extent.rounds; round += 1) {
    bareRates.push(await measureRate('bare'));
    placementRates.push(await measureRate('place'));
  }
  for (const child of children) child.disconnect();
  const msPerPlacement = (counter: keyof CpuTimes): string =>
    (
      (1000 * placementCosts.slice(1).reduce((sum, round) => sum + round[counter], 0)) /
      (placementRates.length * HOSTS * PLACEMENTS)
    ).toFixed(2);
  return {
    figure: {
      ...{ name: 'Placements over three hosts, beside bare commits of one row', unit: 'per s' },
      ...{
        comparison: comparisonOf(bareRates, placementRates),
        target: '≥ 1,000 per s',
        isMet: median(placementRates) >= 1000,
      },
    },
    note: `A placement takes ${msPerPlacement('hosts')} ms of processor time in its host and ${msPerPlacement('postgres')} ms in PostgreSQL.`,
  };
}

// ---- a host and a front --------------------------------------------------------------------------------------------

async function startHosts(): Promise<{ owner: TestServer; front: TestServer }> {
  const s3Server = await startS3();
  scope.defer(() => s3Server.close());
  const env = {
    ...{ DATABASE_URL: HOSTS_DATABASE_URL, ...s3Server.env, BERTH_LOG_LEVEL: 'warn' },
    ...{ BERTH_SECRET: randomBytes(32).toString('hex'), BERTH_MASTER_KEY: randomBytes(32).toString('hex') },
  };
  const start = async (extraEnv: Readonly<Record<string, string>>, key?: string): Promise<TestServer> => {
    const options = { env: { ...env, ...extraEnv }, isMeasured: true, ...(key === undefined ? {} : { key }) };
    const server = new TestServer(options, await claimFreePort());
    await server.start();
    scope.defer(() => server.close());
    return server;
  };
  const owner = await start({ BERTH_SLOTS: '4', BERTH_WARM: '2' });
  const front = await start({ BERTH_SLOTS: '0', BERTH_WARM: '0' }, owner.key);
  await liftLimits(owner);
  return { owner, front };
}

async function measureMs(work: () => Promise<unknown>): Promise<number> {
  const startMs = systemClock.monotonicMs();
  await work();
  return systemClock.monotonicMs() - startMs;
}

/**
 * Measures each side once per turn. The side that begins alternates. The first `uncountedTurns` turns, in which code is
 * compiled, are not included in the result.
 */
async function measureInTurns(
  turns: number,
  base: () => Promise<number>,
  ours: () => Promise<number>,
  uncountedTurns = 1,
) {
  const [baseTimes, ourTimes]: [number[], number[]] = [[], []];
  for (let turn = 0; turn < uncountedTurns; turn += 1) {
    await base();
    await ours();
  }
  for (let turn = 0; turn < turns; turn += 1)
    for (const isBase of turn % 2 === 0 ? [true, false] : [false, true])
      (isBase ? baseTimes : ourTimes).push(await (isBase ? base() : ours()));
  return comparisonOf(baseTimes, ourTimes);
}

async function measureCreates(owner: TestServer, front: TestServer): Promise<Figure> {
  const timeCreate = (entryServer: TestServer) => async (): Promise<number> => {
    const ids: string[] = [];
    const ms = await measureMs(async () => ids.push((await entryServer.createSession({ keepAlive: true })).id));
    for (const id of ids) await owner.release(id);
    for (let remainingMs = STEP_TIMEOUT_MS; remainingMs > 0 && !(await isWarm(owner)); remainingMs -= 100)
      await systemClock.sleep(100);
    return ms;
  };
  const timeComparison = await measureInTurns(extent.creates, timeCreate(owner), timeCreate(front), WARM_UP_CREATES);
  return {
    ...{
      name: 'Create with a warm browser through a front, beside a direct one, p50',
      unit: 'ms',
      comparison: timeComparison,
    },
    ...{ target: '≤ 3 ms more', isMet: timeComparison.ours.median - timeComparison.base.median <= 3 },
  };
}

const isWarm = async (owner: TestServer): Promise<boolean> =>
  (await owner.fetchFromOperator<string>('/metrics')).text.includes('\nberth_warm_browsers 2\n');

const timeList = (server: TestServer) => (): Promise<number> =>
  measureMs(async () => {
    const { status, text } = await server.api('GET', `${SESSIONS_PATH}?limit=${LIST_LIMIT}`);
    if (status !== 200) throw new Error(text);
  });

async function measureLists(owner: TestServer): Promise<{ figure: Figure; rowBytes: number }> {
  const measureTimes = async (): Promise<number[]> => {
    const times: number[] = [];
    for (let turn = 0; turn < extent.lists; turn += 1) times.push(await timeList(owner)());
    return times;
  };
  await insertSessions(owner.applicationId, FEW_ROWS);
  const fewRowsTimes = await measureTimes();
  await hostsClient.query('delete from sessions');
  await insertSessions(owner.applicationId, extent.rows);
  const timeComparison = comparisonOf(fewRowsTimes, await measureTimes());
  const { rows } = await hostsClient.query("select pg_total_relation_size('sessions')::float8 as bytes");
  return {
    figure: {
      ...{
        name: `List of the newest 100 sessions among ${extent.rows.toLocaleString('en')} rows, beside 1,000, p50`,
        unit: 'ms',
      },
      ...{ comparison: timeComparison, target: '≤ 20 ms', isMet: timeComparison.ours.median <= 20 },
    },
    rowBytes: Number(rows[0]?.bytes) / extent.rows,
  };
}

const INSERT_SESSIONS = `
  insert into sessions (id, application_id, host_id, status, region, keep_alive, user_metadata, settings, created_at, updated_at,
    started_at, expires_at, ended_at, end_status, end_reason, end_decided_at)
  select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8000'
      || lpad(to_hex(n), 12, '0'))::uuid, $1, (select id from hosts where state = 'up' limit 1), 'COMPLETED', 'local', false,
    jsonb_build_object('customer', n::text), '{}', at, at, at, at + interval '1 hour', at, 'COMPLETED', 'released', at
  from (select n, now() - n * interval '1 second' as at from generate_series($2::int, $3::int) as n) as invented`;

async function insertSessions(application: string, rows: number): Promise<void> {
  for (let from = 1; from <= rows; from += BATCH_ROWS)
    await hostsClient.query(INSERT_SESSIONS, [application, from, Math.min(from + BATCH_ROWS - 1, rows)]);
  await hostsClient.query('vacuum analyze sessions');
}

async function measureHop(owner: TestServer, front: TestServer): Promise<{ roundTrip: Figure; copiedPerByte: number }> {
  const session = await owner.createSession({ keepAlive: true });
  const [directConnection, frontConnection] = await Promise.all(
    [owner, front].map(server => CdpConnection.open(addressAt(server, session.connectUrl))),
  );
  if (!directConnection || !frontConnection) throw new Error('one of the two CDP connections was not opened');
  const timeRoundTrips = (connection: CdpConnection) => async (): Promise<number> => {
    const times: number[] = [];
    for (let call = 0; call < extent.calls; call += 1)
      times.push(await measureMs(() => connection.send('Browser.getVersion')));
    return median(times);
  };
  const timeComparison = await measureInTurns(
    extent.blocks,
    timeRoundTrips(directConnection),
    timeRoundTrips(frontConnection),
  );
  const page = await frontConnection.attachToPage();
  await frontConnection.evaluate(`globalThis.megabyte = 'x'.repeat(${1024 ** 2}); 0`, page);
  const bytesBefore = bytesCopiedBy(front.pid);
  for (let megabyte = 0; megabyte < extent.megabytes; megabyte += 1) await frontConnection.evaluate('megabyte', page);
  const bytesCopied = bytesCopiedBy(front.pid) - bytesBefore;
  for (const connection of [directConnection, frontConnection]) connection.close();
  await owner.release(session.id);
  const costMs = timeComparison.ours.median - timeComparison.base.median;
  return {
    roundTrip: {
      ...{ name: `Round trip of CDP through a front, beside a direct one, p50 (${costMs.toFixed(3)} ms more)` },
      ...{ unit: 'ms', comparison: timeComparison, target: '≤ 0.15 ms more', isMet: costMs <= 0.15 },
    },
    copiedPerByte: bytesCopied / 2 / (extent.megabytes * 1024 ** 2),
  };
}

/**
 * Measures how much faster a session would start if its host kept the archive of the context: one server stores
 * archives on disk, the other one in a bucket.
 */
async function measureContexts(): Promise<Figure> {
  const site = await openSite();
  scope.defer(() => site.close());
  const s3Server = await startS3();
  scope.defer(() => s3Server.close());
  const startContextServer = async (extraEnv: Readonly<Record<string, string>>) => {
    const env = { BERTH_SLOTS: '2', BERTH_WARM: '0', BERTH_EGRESS_ALLOW: '127.0.0.1/32', ...extraEnv };
    const server = new TestServer({ env, isMeasured: true }, await claimFreePort());
    await server.start();
    scope.defer(() => server.close());
    await liftLimits(server);
    const { id, sizeBytes } = await createFilledContext(server, `${site.url}/idle`, CONTEXT_RECORDS);
    const start = () => measureSessionStart(server, { browserSettings: { context: { id } } });
    return { start, sizeBytes };
  };
  const [disk, bucket] = [await startContextServer({}), await startContextServer(s3Server.env)];
  const timeComparison = await measureInTurns(extent.contexts, disk.start, bucket.start);
  const extraMs = timeComparison.ours.median - timeComparison.base.median;
  const size = `${(bucket.sizeBytes / 1e6).toFixed(1)} MB`;
  return {
    ...{ name: `Start with a context of ${size} from a bucket, beside the disk, p50 (${extraMs.toFixed(0)} ms more)` },
    ...{ unit: 'ms', comparison: timeComparison, target: '', isMet: true },
  };
}

/** Bytes that the process has read and written, according to the kernel's count of its system calls. */
function bytesCopiedBy(pid: number): number {
  const ioText = readFileSync(`/proc/${pid}/io`, 'utf8');
  const byteCountOf = (name: string): number => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(ioText)?.[1]);
  return byteCountOf('rchar') + byteCountOf('wchar');
}

const row = ({ name, unit, comparison: { base, ours, ratio }, target: targetText, isMet }: Figure): string =>
  `| ${name}, ${unit} | ${formatNumber(base.median)} | ${formatNumber(ours.median)} | ${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)}–${ratio.max.toFixed(2)}) | ${targetText}${isMet ? '' : ', **missed**'} |\n`;

const formatNumber = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 3));

async function measure(): Promise<void> {
  process.stdout.write(`Measured on: ${describeMachine(await readMachine())}\n\n`);
  process.stdout.write('| | baseline | median | ratio (min–max) | asked for |\n| --- | ---: | ---: | ---: | --- |\n');
  const notes: string[] = [];
  if (isSelected('placements')) {
    const { figure, note } = await measurePlacements();
    process.stdout.write(row(figure));
    notes.push(note);
  }
  if (isSelected('creates') || isSelected('hop') || isSelected('list')) {
    const { owner, front } = await startHosts();
    if (isSelected('creates')) process.stdout.write(row(await measureCreates(owner, front)));
    if (isSelected('hop')) {
      const { roundTrip, copiedPerByte } = await measureHop(owner, front);
      process.stdout.write(row(roundTrip));
      notes.push(`A front reads and writes ${copiedPerByte.toFixed(2)} bytes for each byte of a result.`);
    }
    if (isSelected('list')) {
      const { figure, rowBytes } = await measureLists(owner);
      process.stdout.write(row(figure));
      notes.push(`A row of a session takes ${rowBytes.toFixed(0)} bytes with its indexes.`);
    }
  }
  if (isSelected('contexts')) process.stdout.write(row(await measureContexts()));
  process.stdout.write(`\nLoad at the end ${(loadavg()[0] ?? 0).toFixed(2)}. ${notes.join(' ')}\n`);
}

try {
  await withTimeout(BENCH_TIMEOUT_MS, 'the bench', measure);
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.stack : error}\n`);
  process.exitCode = 1;
} finally {
  await scope.close();
}
process.exit();
