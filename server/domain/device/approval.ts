// Lets a person read a device authorization, and approve or deny it. The first person who reads the request claims it.
import type { DecideDevice, DecidedDevice, DeviceRequest } from '../../../contract/device.ts';
import { hasRight } from '../../../contract/roles.ts';
import type { DeviceAuthorizationRow, DeviceDecision } from '../../engines/store/rows/device.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import { fault, invalidRequest } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { HumanCaller } from '../identity/caller.ts';
import { isSameNetwork } from '../identity/cidr.ts';
import { assertSteppedUp } from '../identity/step-up.ts';
import { type SharedTallies, type SharedTally, takeAll } from '../limits/shared-tally.ts';
import { normalizeUserCode, userCodeDigest } from './codes.ts';
import type { DeviceAudit } from './device-audit.ts';
import type { IsFromSession, Peer } from './from-session.ts';
import { statusAt } from './state.ts';

const WRONG_CODES_MAX = 10;
const WRONG_CODES_WINDOW_MS = 600_000;
const APPLICATIONS_SHOWN_MAX = 100;

export interface ApprovalParts {
  readonly store: Pick<Store, 'device' | 'applications' | 'atomically'>;
  readonly applications: Pick<Applications, 'require'>;
  readonly clock: Clock;
  readonly tallies: Pick<SharedTallies, 'of'>;
  readonly secret: Secret;
  readonly isFromSession: IsFromSession;
  readonly audit: DeviceAudit;
}

export class Approval {
  readonly #parts: ApprovalParts;
  readonly #wrongCodesByAccount: SharedTally;
  readonly #wrongCodesByAddress: SharedTally;

  constructor(parts: ApprovalParts) {
    this.#parts = parts;
    const limit = { what: 'wrong codes', max: WRONG_CODES_MAX, withinMs: WRONG_CODES_WINDOW_MS } as const;
    this.#wrongCodesByAccount = parts.tallies.of({ ...limit, name: 'device.codes.account', scope: 'account' });
    this.#wrongCodesByAddress = parts.tallies.of({ ...limit, name: 'device.codes.address', scope: 'address' });
  }

  /** Returns the request. The first person who reads it claims it. */
  async read(caller: HumanCaller, userCode: string): Promise<DeviceRequest> {
    const { store, clock, audit } = this.#parts;
    const claimResult = await this.#findByUserCode(caller, userCode, digest =>
      store.atomically(async trx => {
        const claimResult = await trx.device.claim(digest, caller.accountId, clock.now());
        if (claimResult?.isFirst) await audit.recordClaim(claimResult.row, caller, trx);
        return claimResult;
      }),
    );
    return this.#view(claimResult.row, caller);
  }

  async decide(caller: HumanCaller, request: DecideDevice, peer: Peer): Promise<DecidedDevice> {
    const { store, clock, audit, isFromSession } = this.#parts;
    if (request.decision === 'approve') {
      if (isFromSession(peer)) throw requestFromSession();
      assertSteppedUp(caller, clock.now());
    }
    const row = await this.#findByUserCode(caller, request.userCode, async digest =>
      // A request that was not read cannot be approved, but can be denied.
      request.decision === 'deny'
        ? (await store.device.claim(digest, caller.accountId, clock.now()))?.row
        : store.device.getClaimed(digest, caller.accountId, clock.now()),
    );
    const decision: DeviceDecision =
      request.decision === 'deny' ? { status: 'denied' } : await this.#requireApproval(caller, row, request);
    if (row.status !== 'claimed') throw alreadyDecided(row);
    const isDecided = await store.atomically(async trx => {
      const isDecidedHere = await trx.device.decide(row.id, caller.accountId, clock.now(), decision);
      if (isDecidedHere) await audit.recordDecision(row, caller, decision, trx);
      return isDecidedHere;
    });
    if (!isDecided) {
      // The request has been decided since it was read, for example in another tab, or it has expired.
      const currentRow = await store.device.getClaimed(row.userCodeHash, caller.accountId, clock.now());
      throw currentRow ? alreadyDecided(currentRow) : codeNotFound();
    }
    return { id: row.id, status: decision.status };
  }

  /**
   * Looks up a device authorization by its user code. Every lookup is counted before the query, for the person and for
   * the IP address. The count is undone if the code is found.
   */
  async #findByUserCode<Found>(
    { accountId, source }: HumanCaller,
    userCode: string,
    find: (digest: Buffer) => Promise<Found | undefined>,
  ): Promise<Found> {
    const undoAttempts = await takeAll([this.#wrongCodesByAddress, source.ip], [this.#wrongCodesByAccount, accountId]);
    const lookupResult = await find(userCodeDigest(this.#parts.secret, normalizeUserCode(userCode)));
    if (!lookupResult) throw codeNotFound();
    await undoAttempts();
    return lookupResult;
  }

  /**
   * Returns the approval: some or all of the requested scopes, and the chosen applications, for which the person must
   * be allowed to approve devices.
   */
  async #requireApproval(
    caller: HumanCaller,
    row: DeviceAuthorizationRow,
    request: DecideDevice,
  ): Promise<DeviceDecision> {
    const scopes = request.scopes === undefined ? row.scopes : [...new Set<string>(request.scopes)];
    const excessScopes = scopes.filter(scope => !row.scopes.includes(scope));
    if (excessScopes.length > 0)
      throw invalidRequest([
        { path: 'scopes', message: `contains ${excessScopes.join(', ')}, which the program did not request` },
      ]);
    const requestedIds = request.applicationIds;
    if (requestedIds === undefined)
      throw invalidRequest([{ path: 'applicationIds', message: 'is required for an approval' }]);
    if (requestedIds.length === 0 && !scopes.includes('applications:write'))
      throw invalidRequest([
        { path: 'applicationIds', message: 'is empty, which is allowed only with the scope applications:write' },
      ]);
    const applicationIds: ApplicationId[] = [];
    for (const id of new Set(requestedIds))
      applicationIds.push((await this.#parts.applications.require(caller, id, 'approveDevices')).id);
    return { status: 'approved', scopes, applicationIds };
  }

  async #view(row: DeviceAuthorizationRow, { accountId, source }: HumanCaller): Promise<DeviceRequest> {
    const { store, clock } = this.#parts;
    const memberships = await store.applications.list(accountId, { limit: APPLICATIONS_SHOWN_MAX });
    return {
      id: row.id,
      status: statusAt(row, clock.now()),
      client: { id: row.clientId, verified: false },
      ...(row.deviceName === undefined ? {} : { deviceName: row.deviceName }),
      scopes: [...row.scopes],
      requestedFrom: { ip: row.requestedIp, isYourNetwork: isSameNetwork(row.requestedIp, source.ip) },
      ...(row.userAgent === undefined ? {} : { userAgent: row.userAgent }),
      startedAt: row.startedAt.toISOString(),
      expiresAt: row.expiresAt.toISOString(),
      applications: memberships.flatMap(({ id, name, role }) =>
        hasRight(role, 'approveDevices') ? [{ id, name, role }] : [],
      ),
    };
  }
}

const codeNotFound = (): Error =>
  fault('not_found', 'The code does not exist, has expired, or is already in use by another person.', {
    advice: 'Compare the code with the code on the device, or start again on the device.',
  });

const alreadyDecided = ({ status }: DeviceAuthorizationRow): Error =>
  fault('already_decided', 'The device authorization was already decided, and the decision cannot be changed.', {
    advice: 'To decide differently, start a new authorization on the device.',
    details: { status },
  });

const requestFromSession = (): Error =>
  fault('address_not_allowed', 'A device cannot be approved from a browser session of this service.', {
    advice: 'Open the page in your own browser.',
  });
