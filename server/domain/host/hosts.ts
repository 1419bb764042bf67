// The hosts that share the database. The operator lists and drains them in the console.
import {
  type DrainHost,
  HOST_SESSIONS_MAX,
  type HostList,
  type HostSessions,
  LISTED_HOST_STATES,
  type ListedHost,
} from '../../../contract/hosts.ts';
import type { Accounts } from '../../engines/store/rows/accounts.ts';
import type { Hosts as HostRows, ListedHost as ListedRow } from '../../engines/store/rows/hosts.ts';
import { addMs } from '../../kit/clock.ts';
import { type HostId, isUuid } from '../../kit/ids.ts';
import type { Audit } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { fault, notFound } from '../faults.ts';
import type { AccountCaller, HumanCaller } from '../identity/caller.ts';
import { assertOperator } from './operator.ts';

export interface HostsParts {
  readonly rows: Pick<HostRows, 'list' | 'drain' | 'sessionsOn'>;
  readonly accounts: Pick<Accounts, 'first'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly host: HostId;
  /** How long a lease lasts. */
  readonly leaseMs: number;
  readonly version: string;
}

export class Hosts {
  readonly #parts: HostsParts;

  constructor(parts: HostsParts) {
    this.#parts = parts;
  }

  async list(caller: AccountCaller): Promise<HostList> {
    await assertOperator(this.#parts.accounts, caller);
    const data = await this.#listAll();
    return { isAlone: !data.some(({ isThis, state }) => !isThis && (state === 'up' || state === 'away')), data };
  }

  async sessions(caller: AccountCaller, hostId: string): Promise<HostSessions> {
    await assertOperator(this.#parts.accounts, caller);
    const { id } = await this.#requireHost(hostId);
    // The id was read from the database.
    const sessionRows = await this.#parts.rows.sessionsOn(id as HostId, HOST_SESSIONS_MAX);
    return {
      data: sessionRows.map(({ createdAt, expiresAt, ...session }) => ({
        ...{ ...session, createdAt: createdAt.toISOString(), expiresAt: expiresAt.toISOString() },
      })),
    };
  }

  async drain(caller: HumanCaller, hostId: string, { draining }: DrainHost): Promise<ListedHost> {
    const { accounts, rows, audit } = this.#parts;
    await assertOperator(accounts, caller);
    const { id, state } = await this.#requireHost(hostId);
    if (state === 'alone') throw noOtherHosts();
    // The id was read from the database.
    if (!(await rows.drain(id as HostId, draining))) throw notFound('Host', hostId);
    const action = draining ? 'host.drained' : 'host.undrained';
    const target = { kind: 'host', id };
    await audit.record({ ...byCaller(caller), action, accountId: caller.accountId, target, outcome: 'success' });
    return this.#requireHost(hostId);
  }

  async #listAll(): Promise<ListedHost[]> {
    return (await this.#parts.rows.list()).flatMap(row => this.#view(row));
  }

  async #requireHost(hostId: string): Promise<ListedHost> {
    const listedHost = isUuid(hostId) && (await this.#listAll()).find(({ id }) => id === hostId.toLowerCase());
    if (!listedHost) throw notFound('Host', hostId);
    return listedHost;
  }

  #view(row: ListedRow): ListedHost[] {
    const { host, leaseMs, version: ownVersion } = this.#parts;
    const { id, draining, region, labels, slots, used, startedAt, leaseUntil } = row;
    const isThis = id === host;
    const state = LISTED_HOST_STATES.find(known => known === (row.state === 'up' && !row.isFresh ? 'lost' : row.state));
    const version = row.version ?? (isThis ? ownVersion : undefined);
    if (!state) return [];
    return [
      {
        ...{ id, isThis, state, draining, region, labels: { ...labels }, slots, used },
        ...(version === undefined ? {} : { version }),
        ...(row.url === null ? {} : { url: row.url }),
        startedAt: startedAt.toISOString(),
        // While a host is restarting, its lease is longer, so the time of the last renewal cannot be computed from the
        // lease.
        ...(leaseUntil && row.state === 'up' ? { heardAt: addMs(leaseUntil, -leaseMs).toISOString() } : {}),
      },
    ];
  }
}

const noOtherHosts = (): Error =>
  fault('feature_unavailable', 'This is the only host, so no other host can take its sessions.', {
    advice:
      'Stop the server with SIGINT, which ends its sessions, or with SIGTERM, which leaves them running for the next start.',
  });
