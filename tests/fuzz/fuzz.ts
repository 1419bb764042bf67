// Rounds of hostile values through every entrance, with a look after each batch at what must be unhurt, and a report.
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { openBetween } from './between.ts';
import { attackFromClients } from './entrances/clients.ts';
import { attackFromPages } from './entrances/pages.ts';
import { attackFromBrowser } from './entrances/pipe.ts';
import { attackFromCallers } from './entrances/requests.ts';
import { attackFromViewers } from './entrances/viewers.ts';
import { Hostile } from './hostile.ts';
import { openHostileWeb } from './hostile-web.ts';
import {
  assertUnhurt,
  Notes,
  openAccounts,
  releaseAll,
  residentBytes,
  type Turns,
  turnsOf,
  Witness,
  type World,
} from './world.ts';

type Attack = (world: World, hostile: Hostile, count: number) => Promise<void>;

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
  /** So many hostile things, about. */
  readonly count: number;
}

export interface FuzzWish {
  /** Of the longest texts and the deepest nesting. */
  readonly repeats: number;
  readonly recordSession: boolean;
}

export interface Report {
  /** By entrance. */
  readonly said: Record<string, number>;
  /** The longest that another application's session took to answer. */
  worstAnswerMs: number;
}

export class Fuzz {
  readonly world: World;
  readonly #wish: FuzzWish;
  readonly report: Report = { said: {}, worstAnswerMs: 0 };

  private constructor(world: World, wish: FuzzWish) {
    this.world = world;
    this.#wish = wish;
  }

  static async open(wish: FuzzWish): Promise<Fuzz> {
    const [pages, web, between] = [await openPages(), await openHostileWeb(), await openBetween()];
    const allowed = [pages, web].map(({ port }) => `127.0.0.1/32:${port}`).join(',');
    const env = { ...pages.settings, BERTH_EGRESS_ALLOW: allowed, BERTH_CHROMIUM: between.path, BERTH_SLOTS: '8' };
    const server = await startServer({ env });
    const accounts = await openAccounts(server);
    const witness = await Witness.open(server, accounts.witnessKey);
    const browserSettings = { recordSession: wish.recordSession };
    return new Fuzz(
      { server, pages, web, between, witness, accounts, notes: new Notes(), wish: { browserSettings } },
      wish,
    );
  }

  turns(): Promise<Turns> {
    return turnsOf(this.world);
  }

  get memoryBytes(): number {
    return residentBytes(this.world.server.pid);
  }

  /** One batch, and a look at what must be unhurt. A failure says how to do it again. */
  async batch({ entrance, seed, count }: BatchPlan): Promise<void> {
    const { world } = this;
    const { server, notes } = world;
    const before = notes.said;
    const pid = server.pid;
    try {
      await ENTRANCES[entrance](world, new Hostile(seed, this.#wish.repeats), count);
      await releaseAll(world);
      await assertUnhurt(world, entrance === 'adoption' ? server.pid : pid);
    } catch (error) {
      const again = JSON.stringify({ entrance, seed, count });
      const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
      throw new Error(`${again} found something: ${why}\nSaid last:\n  ${notes.last}`);
    } finally {
      this.report.said[entrance] = (this.report.said[entrance] ?? 0) + notes.said - before;
      this.report.worstAnswerMs = world.witness.worstMs;
    }
  }
}

/** What a page and a client have said is read again by a successor: it must live through that, and take over the others. */
async function attackThroughAdoption(world: World, hostile: Hostile, count: number): Promise<void> {
  const { server, witness, notes } = world;
  const saidBefore = notes.said;
  let isKilled = false;
  const attacks = [attackFromPages, attackFromClients].map(attack =>
    attack(world, hostile, count).catch(error => {
      if (!isKilled) throw error;
    }),
  );
  const done = Promise.all(attacks);
  const enough = eventually('enough to be said', () => notes.said >= saidBefore + count);
  await Promise.race([done, enough]);
  isKilled = true;
  await witness.pause();
  await server.kill();
  await server.start();
  await witness.resume();
  await done;
  await enough;
}
