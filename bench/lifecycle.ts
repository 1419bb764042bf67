// One browser from nothing to nothing: start, first CDP answer, the title of a page, end; ours and by hand in turns.
import { systemClock } from '../server/kit/clock.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { ByHand } from './by-hand.ts';
import { CdpConnection } from './cdp-connection.ts';
import { type Comparison, comparison } from './statistics.ts';

const TITLE = 'bench';
const PAGE = `data:text/html,<title>${TITLE}</title><h1>A page</h1>`;

/** By hand: the DevTools port listens. Ours: the create request is answered. */
const STEPS = ['create', 'CDP answers', 'page title', 'release'] as const;
type Step = (typeof STEPS)[number];
export type Cycle = Readonly<Record<Step | 'whole', number>>;

export interface LifecycleFigure {
  readonly step: string;
  readonly comparison: Comparison;
}

interface Started {
  readonly url: string;
  end(): Promise<unknown>;
}

export async function measureLifecycle(server: TestServer, rounds: number): Promise<readonly LifecycleFigure[]> {
  const byHand: Cycle[] = [];
  const ours: Cycle[] = [];
  await sessionCycle(server); // warm: the first ever reads everything from disk
  await byHandCycle();
  for (let round = 0; round < rounds; round++) {
    byHand.push(await byHandCycle());
    ours.push(await sessionCycle(server));
  }
  return ([...STEPS, 'whole'] as const).map(step => ({
    step,
    comparison: comparison(
      byHand.map(cycle => cycle[step]),
      ours.map(cycle => cycle[step]),
    ),
  }));
}

export const sessionCycle = (server: TestServer): Promise<Cycle> =>
  cycle(async () => {
    const session = await server.createSession();
    return { url: session.connectUrl, end: () => server.release(session.id) };
  });

export const byHandCycle = (): Promise<Cycle> =>
  cycle(async () => {
    const browser = await ByHand.start();
    return { url: browser.url, end: () => browser.close() };
  });

async function cycle(start: () => Promise<Started>): Promise<Cycle> {
  const times: number[] = [systemClock.monotonicMs()];
  const mark = (): void => void times.push(systemClock.monotonicMs());
  const { url, end } = await start();
  mark();
  const connection = await CdpConnection.open(url);
  await connection.send('Browser.getVersion');
  mark();
  const page = await connection.attachToPage();
  await connection.visit(PAGE, page);
  const title = await connection.evaluate('document.title', page);
  if (title !== TITLE) throw new Error(`the title is ${JSON.stringify(title)}`);
  mark();
  connection.close();
  await end();
  mark();
  const [begin = 0, created = 0, answered = 0, titled = 0, ended = 0] = times;
  return {
    create: created - begin,
    'CDP answers': answered - created,
    'page title': titled - answered,
    release: ended - titled,
    whole: ended - begin,
  };
}
