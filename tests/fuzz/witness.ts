// Another application's session, which is queried continuously and must always answer.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { after } from 'node:test';
import type { CreatedSession, TestServer } from '../harness/server.ts';
import { withTimeLimit } from '../harness/until.ts';

const RESPONSE_TIMEOUT_MS = 60_000;

interface QueryResponse {
  readonly startedAtMs: number;
  readonly ms: number;
}

/** The process that sends the queries. */
interface Client {
  readonly process: ChildProcess;
  /** Resolves when the process has ended, with its exit status and its errors. */
  readonly whenEnded: Promise<{ readonly status: number | null; readonly errors: string }>;
}

export class Witness {
  readonly session: CreatedSession;
  readonly #responseTimesMs: number[] = [];
  #client: Client;

  private constructor(session: CreatedSession) {
    this.session = session;
    this.#client = this.#startClient();
  }

  static async open(server: TestServer, key: string): Promise<Witness> {
    const options = { keepAlive: true, browserSettings: { recordSession: false } };
    const witness = new Witness(await server.createSession(options, key));
    after(() => witness.#client.process.kill());
    await witness.assertUnaffected();
    return witness;
  }

  get worstMs(): number {
    return this.#responseTimesMs.reduce((worst, ms) => Math.max(worst, ms), 0);
  }

  get p99Ms(): number {
    const sortedMs = this.#responseTimesMs.toSorted((one, other) => one - other);
    return sortedMs[Math.floor(0.99 * sortedMs.length)] ?? 0;
  }

  /** Waits for the response to a query that starts from now on. Fails if a query was not answered. */
  async assertUnaffected(): Promise<void> {
    const { process: child, whenEnded } = this.#client;
    const nowMs = Date.now();
    const nextResponse = Promise.withResolvers<void>();
    const onMessage = ({ startedAtMs }: QueryResponse): void => {
      if (startedAtMs >= nowMs) nextResponse.resolve();
    };
    child.on('message', onMessage);
    const failure = whenEnded.then(({ errors }) => Promise.reject(new Error(`the client has ended: ${errors}`)));
    try {
      const outcome = Promise.race([nextResponse.promise, failure]);
      await withTimeLimit("the other application's session to answer", outcome, RESPONSE_TIMEOUT_MS);
    } finally {
      child.off('message', onMessage);
    }
  }

  /** Disconnects after the current query. */
  async pause(): Promise<void> {
    const { process: child, whenEnded } = this.#client;
    if (child.connected) child.disconnect();
    const { status, errors } = await withTimeLimit('the client of the session to end', whenEnded, RESPONSE_TIMEOUT_MS);
    if (status !== 0) throw new Error(errors);
  }

  /** Connects again after a restart, with the same URL and to the same page. */
  async resume(): Promise<void> {
    this.#client = this.#startClient();
    await this.assertUnaffected();
  }

  #startClient(): Client {
    const path = new URL('witness-process.ts', import.meta.url);
    const child = fork(path, [this.session.connectUrl], { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] });
    child.on('message', ({ ms }: QueryResponse) => void this.#responseTimesMs.push(ms));
    return { process: child, whenEnded: endOf(child) };
  }
}

async function endOf(child: ChildProcess): Promise<{ status: number | null; errors: string }> {
  const [[status], errors] = await Promise.all([once(child, 'exit'), child.stderr ? text(child.stderr) : '']);
  return { status, errors };
}
