// Creates, drives and releases sessions, several at the same time, while browsers, individual browser processes, jails
// and the server itself are killed. An error is tolerated only in a cycle in which something was killed, and every
// session must end with a reason that the kill explains. At the end, the kernel's tables are searched for leftovers.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import type { Session } from '../../contract/sessions.ts';
import { boxesOf } from '../harness/boxes.ts';
import { CdpClient } from '../harness/cdp.ts';
import { killIfRunning } from '../harness/kill-if-there.ts';
import type { Pages } from '../harness/pages.ts';
import type { CreatedSession, TestServer } from '../harness/server.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';
import { assertOpenSessionsRespond, listOpenSessions, releaseAll } from './aftermath.ts';
import type { Census } from './census.ts';
import { type Cycle, type Kill, type PlanOptions, planOf } from './churn-plan.ts';
import { connectPlaywright, firstPage, isResponsive } from './clients.ts';
import { boxProcessesOf, childrenOfServer } from './victims.ts';

const CYCLES_AT_ONCE = 4;
const CYCLE_TIMEOUT_MS = 180_000;
const END_TIMEOUT_MS = 60_000;
/** This limit is long, because recordings are encoded one after another. */
const ENCODE_TIMEOUT_MS = 180_000;
const EVALUATION_COUNT = 20;
/**
 * The number of descriptors that may be open in addition to those at the beginning, for example for connections to the
 * database and requests in progress.
 */
const EXTRA_DESCRIPTORS_MAX = 16;
const SESSIONS = '/v1/browsers/sessions';

export interface ChurnOptions extends PlanOptions {
  readonly server: TestServer;
  readonly pages: Pages;
  /** Counts sessions, browsers and slots during the whole churn. Used only if the server is not killed. */
  readonly census?: Census;
}

/** How often each outcome occurred. */
export type Tally = Readonly<Record<string, number>>;

export async function churn(options: ChurnOptions): Promise<Tally> {
  const run = new Churn(options);
  const beganMs = performance.now();
  const initialDescriptorCount = await descriptorCountOf(options.server);
  options.census?.begin();
  try {
    await run.all(planOf(options));
  } finally {
    await options.census?.end();
  }
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  await assertNothingLeft(options.server, initialDescriptorCount);
  return { cycles: options.cycles, ...run.tally(), seconds };
}

class Churn {
  readonly #options: ChurnOptions;
  readonly #tally = new Map<string, number>();
  /** Number of times that the server was killed. */
  #kills = 0;
  #up: Promise<void> = Promise.resolve();

  constructor(options: ChurnOptions) {
    this.#options = options;
  }

  tally(): Tally {
    return Object.fromEntries([...this.#tally].sort(([one], [other]) => one.localeCompare(other)));
  }

  async all(plan: readonly Cycle[]): Promise<void> {
    const remainingCycles = [...plan];
    const work = async (): Promise<void> => {
      for (let cycle = remainingCycles.shift(); cycle; cycle = remainingCycles.shift()) {
        const what = `cycle ${cycle.number} (${JSON.stringify(cycle)})`;
        await withTimeLimit(what, this.#runCycle(cycle), CYCLE_TIMEOUT_MS).catch(error => {
          remainingCycles.length = 0;
          throw new Error(`seed ${this.#options.seed}, ${what} failed`, { cause: error });
        });
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: CYCLES_AT_ONCE }, work));
    await this.#up;
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  async #runCycle(cycle: Cycle): Promise<void> {
    const killsBefore = await this.#waitUntilUp();
    const wasServerKilled = (): boolean => this.#kills > killsBefore;
    const session = await this.#create(cycle, wasServerKilled);
    if (!session) return;
    let actualKill: Kill | undefined;
    const killAfterDelay = async (): Promise<void> => {
      if (!cycle.kill || cycle.kill === 'starting') return;
      await new Promise(resolve => setTimeout(resolve, cycle.killAfterMs));
      actualKill = this.#kill(session.id, cycle.kill) ? cycle.kill : undefined;
    };
    const restartAfterDelay = async (): Promise<void> => {
      if (!cycle.restart) return;
      await new Promise(resolve => setTimeout(resolve, cycle.killAfterMs));
      await this.#restart();
    };
    const [driveOutcome, , restartOutcome] = await Promise.allSettled([
      this.#drive(cycle, session),
      killAfterDelay(),
      restartAfterDelay(),
    ]);
    if (restartOutcome.status === 'rejected') throw restartOutcome.reason;
    if (driveOutcome.status === 'rejected' && !actualKill && !wasServerKilled() && cycle.kill !== 'starting')
      throw driveOutcome.reason;
    await this.#up;
    await this.#end(cycle, session, actualKill, wasServerKilled);
  }

  /** Creates a session. If there is no session to drive, counts the reason and returns undefined. */
  async #create(cycle: Cycle, wasServerKilled: () => boolean): Promise<CreatedSession | undefined> {
    const { server } = this.#options;
    const name = `${this.#options.seed}-${cycle.number}`;
    const body = { keepAlive: cycle.keepAlive, userMetadata: { churn: name } };
    const pendingCreate = server.api<CreatedSession>('POST', SESSIONS, { body });
    const pendingKill =
      cycle.kill === 'starting' ? this.#killWhileStarting(name, pendingCreate) : Promise.resolve(false);
    const [createResponse, wasKilled] = await Promise.all([pendingCreate.catch(() => undefined), pendingKill]);
    if (createResponse?.status === 201) return createResponse.body;
    assert.ok(
      wasKilled || wasServerKilled(),
      `a create failed without a kill: ${createResponse?.status} ${createResponse?.text}`,
    );
    const row = await this.#retryAfterKill(() => this.#find(name));
    this.#count(`create lost: ${row ? `${row.status} ${row.endReason ?? ''}`.trim() : 'no row'}`);
    return undefined;
  }

  async #killWhileStarting(name: string, pendingCreate: Promise<unknown>): Promise<boolean> {
    let isSettled = false;
    pendingCreate.then(
      () => (isSettled = true),
      () => (isSettled = true),
    );
    while (!isSettled) {
      const row = await this.#find(name).catch(() => undefined);
      if (row && this.#kill(row.id, 'timeout')) return true;
    }
    return false;
  }

  async #find(name: string): Promise<Session | undefined> {
    const q = encodeURIComponent(`user_metadata['churn']:'${name}'`);
    const { status, body } = await this.#options.server.api<Session[]>('GET', `${SESSIONS}?q=${q}`);
    assert.equal(status, 200);
    return body[0];
  }

  /** Kills the process or processes of this kind. Returns whether there was one to kill. */
  #kill(session: string, kind: Kill): boolean {
    try {
      const box = boxProcessesOf(this.#options.server, session);
      const victims = {
        starting: [],
        browser: [box.browser],
        renderer: box.renderers,
        bwrap: [box.bwrap],
        timeout: [box.leader],
      }[kind];
      const wasKilled = victims.filter(killIfRunning).length > 0;
      if (wasKilled) this.#count(`killed: ${kind}`);
      return wasKilled;
    } catch {
      return false; // the box has already ended or has not started yet
    }
  }

  #restart(): Promise<void> {
    this.#kills++;
    this.#count('killed: server');
    this.#up = this.#up.then(() => this.#options.server.restart('SIGKILL'));
    return this.#up;
  }

  async #drive(cycle: Cycle, session: CreatedSession): Promise<void> {
    const url = `${this.#options.pages.url}/next`;
    if (cycle.client === 'raw') return driveRaw(session, url);
    const browser = await connectPlaywright(session);
    try {
      const page = firstPage(browser);
      await page.goto(url);
      assert.equal(await page.title(), 'Next');
      for (let times = 0; times < EVALUATION_COUNT; times++) await page.evaluate('document.title');
    } finally {
      await browser.close();
    }
  }

  /**
   * Releases the session if nothing else ends it, waits until it has ended, and asserts that the end reason is an
   * expected one. A kill, or the disconnection of the client, may already have ended the session.
   */
  async #end(
    cycle: Cycle,
    session: CreatedSession,
    actualKill: Kill | undefined,
    wasServerKilled: () => boolean,
  ): Promise<void> {
    const { server } = this.#options;
    const fatal = actualKill !== undefined && actualKill !== 'renderer';
    if (!fatal) await this.#retryAfterKill(() => this.#assertResponsive(cycle, session));
    if (!fatal && cycle.keepAlive) await this.#retryAfterKill(() => this.#release(session));
    const endedSession = await this.#retryAfterKill(() => server.waitUntilEnded(session.id, END_TIMEOUT_MS));
    const end = `${endedSession.status} ${endedSession.endReason}`;
    const expectedEnds = new Set([
      ...(fatal ? ['ERROR crashed'] : []),
      // If the client finished before the kill, its disconnection may have ended the session.
      ...(!cycle.keepAlive ? ['COMPLETED client_disconnected'] : []),
      ...(!fatal && cycle.keepAlive ? ['COMPLETED released'] : []),
      ...(cycle.kill === 'starting' ? ['ERROR crashed', 'ERROR start_failed'] : []),
      ...((fatal || cycle.kill === 'starting') && wasServerKilled() ? ['ERROR service_restart'] : []),
    ]);
    assert.ok(expectedEnds.has(end), `ended as ${end}; expected ${[...expectedEnds].join(' or ')}`);
    this.#count(`ended: ${end}`);
  }

  /**
   * Waits until the server is up and returns the number of times that it was killed. Another cycle may kill it right
   * after its start.
   */
  async #waitUntilUp(): Promise<number> {
    for (;;) {
      const up = this.#up;
      await up;
      if (up === this.#up) return this.#kills;
    }
  }

  /** Repeats the work if it failed because another cycle killed the server. */
  async #retryAfterKill<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      const killsBefore = await this.#waitUntilUp();
      try {
        return await work();
      } catch (error) {
        if (this.#kills === killsBefore) throw error;
      }
    }
  }

  /** Releases the session. An earlier release whose response was lost may already have ended the session. */
  async #release({ id }: CreatedSession): Promise<void> {
    const body = { status: 'REQUEST_RELEASE' };
    const { status, text } = await this.#options.server.api('POST', `${SESSIONS}/${id}`, { body });
    assert.ok(status === 200 || status === 409, text);
  }

  /**
   * Asserts that a running session responds. If no client had connected to it before, the session ends when the client
   * of this check disconnects.
   */
  async #assertResponsive({ kill, keepAlive }: Cycle, session: CreatedSession): Promise<void> {
    try {
      assert.ok(await isResponsive(session));
    } catch (error) {
      // Until the browser has detected that a renderer crashed, a client may attach to the crashed page.
      if (kill === 'renderer' && keepAlive) return this.#waitUntilResponsive(session);
      // A session whose client or browser is gone may be about to end. Its row shows this only a moment later.
      const mayEnd = kill !== undefined || !keepAlive;
      const { status } = await (mayEnd
        ? this.#options.server.waitUntilEnded(session.id)
        : this.#options.server.read(session.id));
      if (status === 'RUNNING') throw error;
    }
  }

  async #waitUntilResponsive(session: CreatedSession): Promise<void> {
    await eventually('a page of the session to respond', () => isResponsive(session).catch(() => false));
  }

  #count(what: string): void {
    this.#tally.set(what, (this.#tally.get(what) ?? 0) + 1);
  }
}

async function driveRaw(session: CreatedSession, url: string): Promise<void> {
  const client = await CdpClient.connect(session.connectUrl);
  try {
    const page = await client.attachToPage();
    await client.send('Page.navigate', { url }, page);
    await eventually(
      'the page to load',
      // The evaluation may be lost while one document is replacing another.
      () => client.evaluate('document.title', page).catch(error => ignoreNavigationError(error)),
      title => title === 'Next',
    );
    for (let times = 0; times < EVALUATION_COUNT; times++) await client.evaluate('document.title', page);
  } finally {
    client.cut();
  }
}

function ignoreNavigationError(error: unknown): string {
  if (/navigated or closed|context was destroyed|Cannot find context/i.test(String(error))) return String(error);
  throw error;
}

async function assertNothingLeft(server: TestServer, initialDescriptorCount: number): Promise<void> {
  // Create requests whose response was lost may have succeeded. Their sessions are still running, and are ended here.
  await assertOpenSessionsRespond(server);
  await releaseAll(server);
  await eventually(
    'only warm browsers to remain',
    () => sessionBoxIdsOf(server),
    left => left.length === 0,
  );
  // A warm browser may be started at any time, so the list is read again at each check.
  await server.waitUntilSettled(() => warmBoxIdsOf(server));
  assert.deepEqual(await listOpenSessions(server), []);
  assert.equal(
    readFileSync('/proc/self/mountinfo', 'utf8').includes(server.dataDir),
    false,
    'no mount of the data folder remains',
  );
  // The processes of boxes are ignored, because a warm browser may be started at any time.
  const otherChildren = () => {
    const boxPids = boxesOf(server.dataDir).flatMap(({ pids }) => pids);
    return childrenOfServer(server).filter(({ pid }) => !boxPids.includes(pid));
  };
  await eventually(
    'the children of the server to end, once the recordings of all these sessions are encoded',
    otherChildren,
    children => children.length === 0,
    ENCODE_TIMEOUT_MS,
  );
  // An open socket in the network namespace of a box would keep the namespace alive.
  await eventually(
    'the server to have closed what it opened for sessions',
    () => descriptorCountOf(server),
    count => count <= initialDescriptorCount + EXTRA_DESCRIPTORS_MAX,
  );
}

const warmBoxIdsOf = (server: TestServer): string[] =>
  boxesOf(server.dataDir).flatMap(({ id }) => (server.sessionOfBox.has(id) ? [] : [id]));

const sessionBoxIdsOf = (server: TestServer): string[] =>
  boxesOf(server.dataDir).flatMap(({ id }) => (server.sessionOfBox.has(id) ? [id] : []));

/** The number of descriptors that the server has open. */
const descriptorCountOf = async (server: TestServer): Promise<number> => readdirSync(`/proc/${server.pid}/fd`).length;
