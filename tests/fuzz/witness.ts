// Another application's session, which is queried continuously and must always answer.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { after } from 'node:test';
import type { CreatedSession, TestServer } from '../harness/server.ts';
import { withTimeLimit } from '../harness/until.ts';

const RESPONSE_TIMEOUT_MS = 60_000;

export class Witness {
  readonly session: CreatedSession;
  /** Response times in milliseconds, in the order of the queries. */
  readonly #responseMs: number[] = [];
  #client: ChildProcess;
  #clientErrors: Promise<string>;

  private constructor(session: CreatedSession) {
    this.session = session;
    [this.#client, this.#clientErrors] = this.#startClient();
  }

  static async open(server: TestServer, key: string): Promise<Witness> {
    const options = { keepAlive: true, browserSettings: { recordSession: false } };
    const witness = new Witness(await server.createSession(options, key));
    after(() => witness.#client.kill());
    await witness.assertUnaffected();
    return witness;
  }

  get worstMs(): number {
    return this.#responseMs.reduce((worst, ms) => Math.max(worst, ms), 0);
  }

  get p99Ms(): number {
    const sortedMs = this.#responseMs.toSorted((one, other) => one - other);
    return sortedMs[Math.floor(0.99 * sortedMs.length)] ?? 0;
  }

  /** Waits for the response to a query that has not been answered yet. Fails if a query was not answered. */
  async assertUnaffected(): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    const nextResponse = once(this.#client, 'message', { signal });
    const clientEnd = this.#clientEnd(signal).then(errors => Promise.reject(new Error(errors)));
    const firstOfBoth = Promise.race([nextResponse, clientEnd]).finally(() => controller.abort());
    await withTimeLimit("the other application's session to answer", firstOfBoth, RESPONSE_TIMEOUT_MS);
  }

  /** Disconnects after the current query. */
  async pause(): Promise<void> {
    const clientEnd = once(this.#client, 'exit');
    this.#client.disconnect();
    const [status] = await withTimeLimit('the client of the session to end', clientEnd, RESPONSE_TIMEOUT_MS);
    if (status !== 0) throw new Error(await this.#clientErrors);
  }

  /** Connects again after a restart, with the same URL and to the same page. */
  async resume(): Promise<void> {
    [this.#client, this.#clientErrors] = this.#startClient();
    await this.assertUnaffected();
  }

  #startClient(): [ChildProcess, Promise<string>] {
    const path = new URL('witness-process.ts', import.meta.url);
    const client = fork(path, [this.session.connectUrl], { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] });
    client.on('message', ms => void this.#responseMs.push(Number(ms)));
    return [client, client.stderr ? text(client.stderr) : Promise.resolve('')];
  }

  async #clientEnd(signal: AbortSignal): Promise<string> {
    if (this.#client.exitCode === null) await once(this.#client, 'exit', { signal });
    return `the client of the other application's session has ended: ${await this.#clientErrors}`;
  }
}
