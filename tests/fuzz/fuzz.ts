// Runs batches of hostile values through every entrance. After each batch, checks that the server is still running and
// that the session of another application was not affected. Reports the results.
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { openPipeInterceptor } from './between.ts';
import { attackFromClients } from './entrances/clients.ts';
import { attackFromPages } from './entrances/pages.ts';
import { attackFromBrowser } from './entrances/pipe.ts';
import { attackFromCallers } from './entrances/requests.ts';
import { attackFromViewers } from './entrances/viewers.ts';
import { HostileValues } from './hostile.ts';
import { openHostileWeb } from './hostile-web.ts';
import { Witness } from './witness.ts';
import {
  assertOthersUnaffected,
  createCredentials,
  type Fixture,
  Notes,
  readTurns,
  releaseAll,
  residentBytesOf,
  type Turns,
} from './world.ts';

type Attack = (world: Fixture, hostile: HostileValues, count: number) => Promise<void>;

export const ENTRANCES = {
  pages: attackFromPages,
  clients: attackFromClients,
  browser: attackFromBrowser,
  viewers: attackFromViewers,
  callers: attackFromCallers,
  adoption: attackThroughAdoption,
} as const satisfies Readonly<Record<string, Attack>>;

export type EntranceName = keyof typeof ENTRANCES;

export interface BatchPlan {
  readonly entrance: EntranceName;
  readonly seed: number;
  /** The approximate number of hostile values. */
  readonly count: number;
}

export interface FuzzOptions {
  /** Scales the length of the longest strings and the depth of the deepest nesting. */
  readonly repeats: number;
  readonly recordSession: boolean;
}

export interface Report {
  /** The number of hostile values, by entrance. */
  readonly sentCounts: Record<string, number>;
  /**
   * The longest response time of another application's session, and the one that 99 % of its responses did not exceed.
   */
  worstResponseMs: number;
  p99ResponseMs: number;
}

export class Fuzz {
  readonly world: Fixture;
  readonly #options: FuzzOptions;
  readonly report: Report = { sentCounts: {}, worstResponseMs: 0, p99ResponseMs: 0 };

  private constructor(world: Fixture, options: FuzzOptions) {
    this.world = world;
    this.#options = options;
  }

  static async open(options: FuzzOptions): Promise<Fuzz> {
    const [pages, web, pipeInterceptor] = [await openPages(), await openHostileWeb(), await openPipeInterceptor()];
    const allowedEndpoints = [pages, web].map(({ port }) => `127.0.0.1/32:${port}`).join(',');
    const env = {
      ...pages.settings,
      BERTH_EGRESS_ALLOW: allowedEndpoints,
      BERTH_CHROMIUM: pipeInterceptor.path,
      BERTH_SLOTS: '8',
    };
    const server = await startServer({ env });
    const credentials = await createCredentials(server);
    const witness = await Witness.open(server, credentials.witnessKey);
    const browserSettings = { recordSession: options.recordSession };
    return new Fuzz(
      {
        server,
        pages,
        web,
        pipeInterceptor,
        witness,
        credentials,
        notes: new Notes(),
        sessionOptions: { browserSettings },
      },
      options,
    );
  }

  readTurns(): Promise<Turns> {
    return readTurns(this.world);
  }

  get memoryBytes(): number {
    return residentBytesOf(this.world.server.pid);
  }

  /**
   * Runs one batch, and checks that the server is still running and that the session of another application was not
   * affected. The error of a failed batch contains the plan for repeating it.
   */
  async runBatch({ entrance, seed, count }: BatchPlan): Promise<void> {
    const { world } = this;
    const { server, notes } = world;
    const countBefore = notes.notedCount;
    const pid = server.pid;
    try {
      await ENTRANCES[entrance](world, new HostileValues(seed, this.#options.repeats), count);
      await releaseAll(world);
      await assertOthersUnaffected(world, entrance === 'adoption' ? server.pid : pid);
    } catch (error) {
      const planText = JSON.stringify({ entrance, seed, count });
      const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
      throw new Error(
        `the batch ${planText} failed; add it to found.ts: ${why}\nThe last values that were sent:\n  ${notes.lastText}`,
      );
    } finally {
      this.report.sentCounts[entrance] = (this.report.sentCounts[entrance] ?? 0) + notes.notedCount - countBefore;
      this.report.worstResponseMs = world.witness.worstMs;
      this.report.p99ResponseMs = world.witness.p99Ms;
    }
  }
}

/**
 * Kills the server during attacks and restarts it. The next server reads stored data from hostile pages and clients.
 * It must keep running, and must adopt the other sessions.
 */
async function attackThroughAdoption(world: Fixture, hostile: HostileValues, count: number): Promise<void> {
  const { server, witness, notes } = world;
  const countBefore = notes.notedCount;
  let isKilled = false;
  const attacks = [attackFromPages, attackFromClients].map(attack =>
    attack(world, hostile, count).catch(error => {
      if (!isKilled) throw error;
    }),
  );
  const attacksEnd = Promise.all(attacks);
  const pendingValues = eventually('enough hostile values to be sent', () => notes.notedCount >= countBefore + count);
  await Promise.race([attacksEnd, pendingValues]);
  isKilled = true;
  await witness.pause();
  await server.kill();
  await server.start();
  await witness.resume();
  await attacksEnd;
  await pendingValues;
}
