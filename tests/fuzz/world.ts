// The fixture: one server, an application whose session is attacked, and another application whose session must keep
// answering.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { IssuedAgentKey } from '../../contract/agent-keys.ts';
import type { Application } from '../../contract/applications.ts';
import type { IssuedToken } from '../../contract/tokens.ts';
import { sendRequest } from '../harness/http.ts';
import type { Pages } from '../harness/pages.ts';
import type { CreatedSession, TestServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import type { PipeInterceptor } from './between.ts';
import type { HostileWeb } from './hostile-web.ts';
import type { Witness } from './witness.ts';

const SESSIONS = '/v1/browsers/sessions';
const NOTES_MAX = 6;
const NOTE_CHARACTERS_MAX = 400;
const KIB = 1024;
const WORST_TURNS_MAX = 5;

export interface Fixture {
  readonly server: TestServer;
  readonly pages: Pages;
  readonly web: HostileWeb;
  readonly pipeInterceptor: PipeInterceptor;
  readonly witness: Witness;
  readonly credentials: Credentials;
  readonly notes: Notes;
  /** The settings of sessions that are attacked. */
  readonly sessionOptions: object;
}

/** Credentials that the attacks use. Changes to these credentials must not affect other applications. */
export interface Credentials {
  readonly applicationId: string;
  readonly token: string;
  readonly witnessKey: string;
}

/** The last values that were sent, for error messages. */
export class Notes {
  #notedCount = 0;
  readonly #lastNotes: string[] = [];

  note(text: string): void {
    this.#notedCount++;
    this.#lastNotes.push(
      text.length > NOTE_CHARACTERS_MAX ? `${text.slice(0, NOTE_CHARACTERS_MAX)}… (${text.length})` : text,
    );
    if (this.#lastNotes.length > NOTES_MAX) this.#lastNotes.shift();
  }

  get notedCount(): number {
    return this.#notedCount;
  }

  get lastText(): string {
    return this.#lastNotes.map(text => JSON.stringify(text)).join('\n  ');
  }
}

/** Creates another application with a key, and a token that is restricted to a third application. */
export async function createCredentials(server: TestServer): Promise<Credentials> {
  const { stdout } = await server.operate('tokens', 'create', '--json');
  const ownerToken: string = JSON.parse(stdout).token;
  const createResource = async <Body>(path: string, body: object): Promise<Body> => {
    const response = await server.api<Body>('POST', path, { key: ownerToken, body });
    assert.equal(response.status, 201, response.text);
    return response.body;
  };
  const witnessApplication = await createResource<Application>('/v1/applications', { name: 'Witness' });
  const { key } = await createResource<IssuedAgentKey>(`/v1/applications/${witnessApplication.id}/agent-keys`, {
    name: 'witness',
  });
  const attackedApplication = await createResource<Application>('/v1/applications', { name: 'Attacked' });
  const { token } = await createResource<IssuedToken>('/v1/account/tokens', {
    name: 'attacked',
    scopes: ['applications:read', 'applications:write', 'keys:write', 'limits:write'],
    applicationIds: [attackedApplication.id],
  });
  return { applicationId: attackedApplication.id, token, witnessKey: key };
}

/** Runs the work with a session to attack. Then releases all sessions of the attacked application. */
export async function withSession<T>(world: Fixture, work: (session: CreatedSession) => Promise<T>): Promise<T> {
  const session = await world.server.createSession({ keepAlive: true, ...world.sessionOptions });
  const result = await work(session);
  await releaseAll(world);
  return result;
}

/** Releases every session of the attacked application. Some may have ended already. */
export async function releaseAll({ server }: Fixture): Promise<void> {
  const listResponse = await server.api<CreatedSession[]>('GET', `${SESSIONS}?status=PENDING,RUNNING`);
  assert.equal(listResponse.status, 200, listResponse.text);
  for (const { id } of listResponse.body)
    await server.api('POST', `${SESSIONS}/${id}`, { body: { status: 'REQUEST_RELEASE' } });
}

/**
 * Asserts that the server process is the same, that the other application was not affected, and that no attacked
 * session remains.
 */
export async function assertOthersUnaffected({ server, witness }: Fixture, pid: number): Promise<void> {
  assert.equal(server.pid, pid);
  assert.doesNotThrow(() => process.kill(pid, 0), 'the server has ended');
  await eventually('the server to answer', async () => (await sendRequest(`${server.url}/healthz`, {})).status === 200);
  await witness.assertUnaffected();
  await server.waitUntilSettled([witness.session.id]);
}

export const residentBytesOf = (pid: number): number =>
  KIB * Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

export interface Turns {
  /** The CPU time of the longest event loop turn since the start of the server, or 0 if none took over 100 ms. */
  readonly longestMs: number;
  /** The number of turns over 100 ms, by the work that they did. */
  readonly longCounts: Readonly<Record<string, number>>;
  /** The log lines of the longest turns. */
  readonly worstLines: readonly string[];
}

export async function readTurns({ server }: Fixture): Promise<Turns> {
  const { text } = await server.fetchFromOperator('/metrics');
  const longestSeconds = /^berth_longest_turn_seconds (\S+)$/m.exec(text)?.[1] ?? 0;
  const longTurns = [...text.matchAll(/^berth_long_turns_total\{work="([^"]*)"\} (\d+)$/gm)];
  return {
    longestMs: Math.round(1000 * Number(longestSeconds)),
    longCounts: Object.fromEntries(longTurns.map(([, work, count]) => [work, Number(count)])),
    worstLines: server
      .log()
      .filter(line => line.includes('loop.long_turn'))
      .toSorted((one, other) => cpuMsOf(other) - cpuMsOf(one))
      .slice(0, WORST_TURNS_MAX),
  };
}

const cpuMsOf = (line: string): number => Number(/"cpuMs":(\d+)/.exec(line)?.[1] ?? 0);
