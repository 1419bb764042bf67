// Agents that work through the proxy of a fleet while hosts are drained, stopped or restarted. Each agent repeatedly
// creates a session, evaluates an expression in its page, reads the session and releases it. Each request must succeed,
// and no session may be lost. Patient agents repeat requests that were answered with 503 or cut off, as the SDK does.
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { Session } from '../../contract/sessions.ts';
import { CdpClient } from '../harness/cdp.ts';
import { sendRequest } from '../harness/http.ts';
import type { CreatedSession } from '../harness/server.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';

const AGENT_COUNT = 2;
const PAUSE_MS = 500;
const REPEATS_MAX = 20;
/** Errors that may be transient: the connection was refused with 503, or cut off by a host that is stopping. */
const TRANSIENT_ERROR = /response: 503|socket hang up|ECONNRESET/;
const SESSIONS = '/v1/browsers/sessions';

export class Traffic {
  readonly #fleet: { readonly url: string; readonly key: string };
  readonly #createdSessions: CreatedSession[] = [];
  readonly #failures: string[] = [];
  readonly #agents: ReadonlyArray<Promise<void>>;
  readonly #isPatient: boolean;
  readonly #repeatReasons: string[] = [];
  #requestCount = 0;
  #isOver = false;

  constructor(fleet: { readonly url: string; readonly key: string }, { isPatient = false } = {}) {
    this.#fleet = fleet;
    this.#isPatient = isPatient;
    this.#agents = Array.from({ length: AGENT_COUNT }, () => this.#runAgent());
  }

  /** Waits for this many new sessions, and returns them. */
  async waitForSessions(count: number): Promise<readonly CreatedSession[]> {
    const countBefore = this.#createdSessions.length;
    await eventually(
      `${count} sessions to be created`,
      () => this.#createdSessions.length + this.#failures.length >= countBefore + count,
    );
    return this.#createdSessions.slice(countBefore);
  }

  /**
   * Stops the agents. `repeatReasons` lists the reason for each repeated request: the error code of the response, or a
   * connection error.
   */
  async end(): Promise<{ requests: number; repeatReasons: readonly string[]; failures: readonly string[] }> {
    this.#isOver = true;
    await withTimeLimit('the agents to end', Promise.all(this.#agents));
    return { requests: this.#requestCount, repeatReasons: this.#repeatReasons, failures: this.#failures };
  }

  async #runAgent(): Promise<void> {
    while (!this.#isOver) {
      await this.#runSession().catch(error => this.#failures.push(String(error)));
      await setTimeout(PAUSE_MS);
    }
  }

  async #runSession(): Promise<void> {
    const session = await this.#ask<CreatedSession>('POST', SESSIONS, 201, { keepAlive: true });
    this.#createdSessions.push(session);
    const path = `${SESSIONS}/${session.id}`;
    await this.#evaluate(session.connectUrl);
    const { status } = await this.#ask<Session>('GET', path, 200);
    if (status !== 'RUNNING') this.#failures.push(`session ${session.id} is ${status}`);
    await this.#ask<Session[]>('GET', `${SESSIONS}?status=RUNNING`, 200);
    await this.#release(path);
    const endedSession = await this.#ask<Session>('GET', path, 200);
    if (endedSession.status !== 'COMPLETED' || endedSession.endReason !== 'released')
      this.#failures.push(`session ${session.id} ended as ${endedSession.status} / ${endedSession.endReason}`);
  }

  /** If the response to a release is lost, the repeated request is refused, because the session has ended. */
  async #release(path: string): Promise<void> {
    try {
      await this.#ask<Session>('POST', path, 200, { status: 'REQUEST_RELEASE' });
    } catch (error) {
      if (!this.#isPatient || !String(error).includes('session_not_running')) throw error;
    }
  }

  /**
   * Connects and evaluates an expression. A host that restarts closes the connections of its clients, and the agent
   * then connects again.
   */
  async #evaluate(connectUrl: string): Promise<void> {
    const client = await this.#connect(connectUrl);
    try {
      await client.evaluate('1 + 1', await client.attachToPage());
    } catch (error) {
      if (client.isOpen) throw error;
      await (await this.#connect(connectUrl)).close();
    } finally {
      client.cut();
    }
  }

  async #connect(url: string): Promise<CdpClient> {
    for (let turn = 0; ; turn += 1)
      try {
        return await CdpClient.connect(url);
      } catch (error) {
        if (!this.#isPatient || turn === REPEATS_MAX || !TRANSIENT_ERROR.test(String(error))) throw error;
        this.#repeatReasons.push('connection');
        await setTimeout(PAUSE_MS);
      }
  }

  async #ask<Body>(method: string, path: string, expected: number, body?: object): Promise<Body> {
    const { url, key } = this.#fleet;
    const headers = {
      ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(path === SESSIONS && method === 'POST' ? { 'idempotency-key': randomUUID() } : {}),
    };
    const bodyOption = body === undefined ? {} : { body: JSON.stringify(body) };
    for (let turn = 0; ; turn += 1) {
      this.#requestCount += 1;
      const responseOrError = await sendRequest<Body>(`${url}${path}`, { method, headers, ...bodyOption }).catch(
        String,
      );
      if (typeof responseOrError === 'object' && responseOrError.status === expected) return responseOrError.body;
      const [isTransient, failureText] =
        typeof responseOrError === 'object'
          ? [responseOrError.status === 503, responseOrError.text]
          : [TRANSIENT_ERROR.test(responseOrError), responseOrError];
      if (!this.#isPatient || !isTransient || turn === REPEATS_MAX)
        throw new Error(`${method} ${path} failed: ${failureText}`);
      this.#repeatReasons.push(/"code":"(\w+)"/.exec(failureText)?.[1] ?? failureText);
      await setTimeout(PAUSE_MS);
    }
  }
}
