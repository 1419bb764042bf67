// The hand-offs API: who may list, read, claim, renew, complete and cancel which hand-off. Whether an operation
// is possible depends on the lease of the session.
import type { PageQuery } from '../../../contract/common.ts';
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import type {
  ClaimedHandoff,
  CompleteHandoff,
  Handoff,
  HandoffPage,
  HandoffsQuery,
  RequestHandoff,
} from '../../../contract/handoffs.ts';
import { hasRight, isAtLeast } from '../../../contract/roles.ts';
import type { HandoffRow, ListedHandoff } from '../../engines/store/rows/handoffs.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { type ApplicationId, type HandoffId, isUuid, type KeyId, type SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Secret } from '../../kit/secret.ts';
import { ANONYMOUS, byAgent, byCaller } from '../audit/by-caller.ts';
import { fault, invalidRequest, notFound, roleMissing, scopeMissing, sessionNotRunning } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller, AgentCaller, RequestSource } from '../identity/caller.ts';
import { mint, recognizeSecret } from '../identity/credentials.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import { assertSteppedUp } from '../identity/step-up.ts';
import type { LiveSessions } from '../sessions/live.ts';
import { handoffEnded, staleFence } from './faults.ts';
import type { HandoffFollower } from './handoff-follower.ts';
import type { Lease } from './lease.ts';
import type { Claimer } from './lease-parts.ts';
import type { HandoffRequests, Requester } from './requests.ts';
import { handoffView, isOpen } from './view.ts';

const WRONG_SECRETS_MAX = 10;
const EVIDENCE_BYTES_MAX = 4_096;
const URL_CHARACTERS_MAX = 1_000;

type ApiCaller = AgentCaller | AccountCaller;

/** The credentials that a request about one hand-off can carry. */
export interface PresentedCredentials {
  readonly caller: ApiCaller | undefined;
  readonly bearer: string | undefined;
  /** The cookie of the browser that opened the claim link. */
  readonly browserCookie: string | undefined;
  readonly source: RequestSource;
}

/**
 * The result of an operation. `browserCookie` is a cookie to set in the response, because this browser was the first to
 * open the link.
 */
export interface HandoffResult<T> {
  readonly value: T;
  readonly browserCookie?: { readonly secret: Secret; readonly until: Date };
}

export interface HandoffsParts {
  readonly store: Pick<Store, 'handoffs' | 'sessions' | 'applications'>;
  readonly requests: HandoffRequests;
  readonly handoffFollower: Pick<HandoffFollower, 'waitForChange'>;
  readonly applications: Pick<Applications, 'require'>;
  readonly leaseOf: (session: SessionId) => Lease | undefined;
  readonly liveSessions: Pick<LiveSessions, 'get'>;
  readonly leaseUrl: (row: HandoffRow, until: Date) => string;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

export class Handoffs {
  readonly #parts: HandoffsParts;

  constructor(parts: HandoffsParts) {
    this.#parts = parts;
  }

  async request(caller: ApiCaller, appId: string, { sessionId, ...terms }: RequestHandoff): Promise<Handoff> {
    const applicationId = await this.#requireApplicationId(caller, appId, 'handoffs');
    return this.#parts.requests.request(applicationId, sessionId, terms, requesterOf(caller));
  }

  async list(
    caller: ApiCaller,
    appId: string,
    { limit = PAGE_LIMIT_DEFAULT, cursor, status, sessionId }: HandoffsQuery & PageQuery,
  ): Promise<HandoffPage> {
    const { store, cursors } = this.#parts;
    const applicationId = await this.#requireApplicationId(caller, appId, 'read');
    const name: ListName = { list: `handoffs ${status ?? ''} ${sessionId ?? ''}`, owner: ownerOf(caller) };
    const rows = await store.handoffs.list(applicationId, {
      limit: limit + 1,
      ...(cursor === undefined ? {} : { before: cursors.read<HandoffId>(name, cursor) }),
      ...(status === undefined ? {} : { status }),
      ...(sessionId === undefined ? {} : { session: sessionId.toLowerCase() as SessionId }), // The schema requires a UUID.
      ...(caller.kind === 'agentKey' ? { key: caller.keyId } : {}),
    });
    return listPageOf(
      rows,
      limit,
      row => ({ ...handoffView(row), ...(caller.kind === 'agentKey' ? {} : this.listedPageOrigin(row)) }),
      last => cursors.after(name, last),
    );
  }

  async read(
    presentedCredentials: PresentedCredentials,
    appId: string,
    id: string,
    waitSeconds: number,
    signal: AbortSignal,
  ): Promise<HandoffResult<Handoff>> {
    const { row, browserCookie } = await this.#requireReadable(presentedCredentials, appId, id);
    const currentRow =
      waitSeconds > 0 ? await this.#parts.handoffFollower.waitForChange(row, 1000 * waitSeconds, signal) : row;
    const displayFields =
      presentedCredentials.caller?.kind === 'agentKey' ? {} : await this.#displayFieldsOf(currentRow);
    return { value: { ...handoffView(currentRow), ...displayFields }, ...(browserCookie ? { browserCookie } : {}) };
  }

  async claim(
    presentedCredentials: PresentedCredentials,
    appId: string,
    id: string,
  ): Promise<HandoffResult<ClaimedHandoff>> {
    const { row, browserCookie, claimer } = await this.#requireClaimable(presentedCredentials, appId, id);
    return { value: await this.claimFor(row, claimer), ...(browserCookie ? { browserCookie } : {}) };
  }

  /** Claims the hand-off for a claimer whom the caller of this method has verified. */
  async claimFor(row: HandoffRow, claimer: Claimer): Promise<ClaimedHandoff> {
    const { row: claimedRow, token } = await this.#leaseOf(row).claim(row.id, claimer);
    const session = await this.#parts.store.sessions.byId(row.sessionId);
    return {
      handoffId: row.id,
      leaseToken: token.reveal(),
      fence: claimedRow.fence,
      leaseExpiresAt: (claimedRow.leaseExpiresAt ?? claimedRow.expiresAt).toISOString(),
      liveViewUrl: this.#parts.leaseUrl(claimedRow, session?.expiresAt ?? claimedRow.expiresAt),
      instructions: claimedRow.instructions,
      ...(claimedRow.allowedOrigins ? { allowedOrigins: [...claimedRow.allowedOrigins] } : {}),
    };
  }

  async renew(presentedCredentials: PresentedCredentials, appId: string, id: string): Promise<Handoff> {
    const row = await this.#requireLeasedHandoff(presentedCredentials, appId, id);
    return handoffView(await this.#leaseOf(row).renew(row.id, row.fence, holderSource(row, presentedCredentials)));
  }

  async complete(
    presentedCredentials: PresentedCredentials,
    appId: string,
    id: string,
    body: CompleteHandoff,
  ): Promise<Handoff> {
    const row = await this.#requireLeasedHandoff(presentedCredentials, appId, id);
    const { evidence, ...reportFields } = body;
    if (evidence && Buffer.byteLength(JSON.stringify(evidence)) > EVIDENCE_BYTES_MAX)
      throw invalidRequest([{ path: 'evidence', message: `has more than ${EVIDENCE_BYTES_MAX} bytes` }]);
    const url = await this.#addressOf(row);
    const report = {
      ...reportFields,
      ...(evidence ? { evidence: evidence as JsonObject } : {}), // The evidence was parsed from JSON.
      ...(url === undefined ? {} : { url }),
    };
    return handoffView(
      await this.#leaseOf(row).complete(row.id, row.fence, report, holderSource(row, presentedCredentials)),
    );
  }

  /** Cancels the hand-off. If the request carries the lease token, control is given back instead. */
  async cancel(presentedCredentials: PresentedCredentials, appId: string, id: string): Promise<Handoff> {
    if (hasLease(presentedCredentials)) {
      const row = await this.#requireLeasedHandoff(presentedCredentials, appId, id);
      await this.#leaseOf(row).returnLease(row.id, row.fence, holderSource(row, presentedCredentials));
      return handoffView((await this.#parts.store.handoffs.get(row.applicationId, row.id)) ?? row);
    }
    const { caller } = presentedCredentials;
    if (!caller) throw invalidSecret();
    const { row } = await this.#requireReadable(presentedCredentials, appId, id);
    if (!isRequester(row, caller)) await this.#assertAdmin(caller, appId);
    if (!isOpen(row)) throw handoffEnded(row);
    const { source, actor } = requesterOf(caller);
    return handoffView(await this.#leaseOf(row).cancel(row.id, source, actor));
  }

  // ---- authorization ------------------------------------------------------------------------------------------------

  async #requireApplicationId(caller: ApiCaller, appId: string, right: 'read' | 'handoffs'): Promise<ApplicationId> {
    if (caller.kind === 'account') return (await this.#parts.applications.require(caller, appId, right)).id;
    if (caller.applicationId !== appId) throw notFound('Application', appId);
    return caller.applicationId;
  }

  async #requireReadable(
    presentedCredentials: PresentedCredentials,
    appId: string,
    id: string,
  ): Promise<{ row: HandoffRow } & Pick<HandoffResult<unknown>, 'browserCookie'>> {
    const { caller } = presentedCredentials;
    if (!caller)
      return hasLease(presentedCredentials)
        ? { row: await this.#requireLeasedHandoff(presentedCredentials, appId, id) }
        : this.#requireLinkedHandoff(presentedCredentials, appId, id);
    const applicationId = await this.#requireApplicationId(caller, appId, 'read');
    const row = isUuid(id) ? await this.#parts.store.handoffs.get(applicationId, id as HandoffId) : undefined;
    if (!row || (caller.kind === 'agentKey' && !belongsToKey(row, caller))) throw notFound('Hand-off', id);
    return { row };
  }

  async #requireClaimable(
    presentedCredentials: PresentedCredentials,
    appId: string,
    id: string,
  ): Promise<{ row: HandoffRow; claimer: Claimer } & Pick<HandoffResult<unknown>, 'browserCookie'>> {
    const { caller, source } = presentedCredentials;
    if (caller?.kind === 'agentKey') throw personRequired();
    if (!caller) {
      const { row, browserCookie } = await this.#requireLinkedHandoff(presentedCredentials, appId, id);
      const claimer: Claimer = { kind: 'link', source: { ...ANONYMOUS, ...source } };
      return { row, claimer, ...(browserCookie ? { browserCookie } : {}) };
    }
    await this.#requireApplicationId(caller, appId, 'handoffs');
    const { row } = await this.#requireReadable(presentedCredentials, appId, id);
    if (row.claimableBy !== 'members') throw notForMembers(row);
    if (row.reason === 'payment') assertSteppedUp(caller, this.#parts.clock.now());
    return { row, claimer: { kind: 'account', id: caller.accountId, source: byCaller(caller) } };
  }

  /**
   * Finds the hand-off by the secret of the claim link. The secret is accepted only from the browser that first opened
   * the link.
   */
  async #requireLinkedHandoff(
    { bearer = '', browserCookie: cookie, source: _ }: PresentedCredentials,
    appId: string,
    id: string,
  ): Promise<{ row: HandoffRow } & Pick<HandoffResult<unknown>, 'browserCookie'>> {
    const { handoffs } = this.#parts.store;
    const applicationId = appId as ApplicationId; // The HTTP entry has checked that the id is a UUID.
    const row = isUuid(id) ? await handoffs.get(applicationId, id as HandoffId) : undefined;
    const hash = recognizeSecret('handoff_claim', bearer);
    if (!row || !hash || !row.claimHash?.equals(hash)) {
      if (row?.claimHash) await handoffs.countWrongSecret(applicationId, row.id, WRONG_SECRETS_MAX);
      throw invalidSecret();
    }
    const cookieHash = cookie === undefined ? undefined : recognizeSecret('handoff_browser', cookie);
    if (row.claimBrowser) {
      if (!cookieHash || !row.claimBrowser.equals(cookieHash)) throw wrongBrowser(row);
      return { row };
    }
    const secret = mint('handoff_browser');
    if (!(await handoffs.bindBrowser(applicationId, row.id, secret.hash))) throw wrongBrowser(row);
    return { row, browserCookie: { secret: secret.text, until: row.expiresAt } };
  }

  async #requireLeasedHandoff({ bearer = '' }: PresentedCredentials, appId: string, id: string): Promise<HandoffRow> {
    const hash = recognizeSecret('handoff_lease', bearer);
    if (!hash) throw holderRequired();
    const row = await this.#parts.store.handoffs.byLease(hash);
    if (row && row.id === id && row.applicationId === appId) return row;
    const existingRow = isUuid(id)
      ? await this.#parts.store.handoffs.get(appId as ApplicationId, id as HandoffId)
      : undefined;
    // The error does not reveal whether the lease token was ever valid.
    throw existingRow ? staleFence(id) : notFound('Hand-off', id);
  }

  async #assertAdmin(caller: ApiCaller, appId: string): Promise<void> {
    if (caller.kind === 'agentKey')
      throw fault(
        'permission_denied',
        'Only the requester of a hand-off, or an admin of the application, can cancel the hand-off.',
      );
    const { role } = await this.#parts.applications.require(caller, appId, 'read');
    if (!isAtLeast(role, 'admin')) throw roleMissing('admin');
    if (!hasRight(role, 'handoffs') || !caller.scopes.has('handoffs:write')) throw scopeMissing(['handoffs:write']);
  }

  #leaseOf(row: HandoffRow): Lease {
    const lease = this.#parts.leaseOf(row.sessionId);
    if (!lease) throw isOpen(row) ? sessionNotRunning(row.sessionId, 'ending') : handoffEnded(row);
    return lease;
  }

  /** Returns the data that a person sees before they take control: the application, and the origin of the page. */
  async #displayFieldsOf(row: HandoffRow): Promise<Pick<Handoff, 'applicationName' | 'pageOrigin'>> {
    const application = await this.#parts.store.applications.byId(row.applicationId);
    return { ...(application ? { applicationName: application.name } : {}), ...(await this.currentPageOrigin(row)) };
  }

  /** Returns the origin of the current page, if the hand-off is open. */
  async currentPageOrigin(row: HandoffRow): Promise<Pick<Handoff, 'pageOrigin'>> {
    const url = isOpen(row) ? await this.#pageUrlOf(row) : undefined;
    return url ? { pageOrigin: url.origin } : {};
  }

  // ---- the address of the page --------------------------------------------------------------------------------------

  /**
   * Returns the page origin without a request to the browser. If the session is on another host, the origin may be a few
   * seconds out of date, and it is absent if the hand-off names a page.
   */
  listedPageOrigin(row: ListedHandoff): Pick<Handoff, 'pageOrigin'> {
    if (!isOpen(row)) return {};
    const currentPage = this.#parts.liveSessions.get(row.sessionId)?.browser.changedPage;
    if (row.pageId !== undefined && row.pageId !== currentPage?.targetId) return {};
    const url = URL.parse(currentPage?.url ?? row.pageUrl ?? '');
    return url && url.origin !== 'null' ? { pageOrigin: url.origin } : {};
  }

  /**
   * Returns the address without its query and fragment, because these may contain text that the person typed. Typed text
   * in the path is redacted. If the session has no log, the server does not know this text, and the path is left out.
   */
  async #addressOf(row: HandoffRow): Promise<string | undefined> {
    const url = await this.#pageUrlOf(row);
    const live = this.#parts.liveSessions.get(row.sessionId);
    if (!url || !live) return undefined;
    const path = live.redactTyped?.(live.secrets.clean(url.pathname)) ?? '/';
    return `${url.origin}${path}`.slice(0, URL_CHARACTERS_MAX);
  }

  /** Returns the address of the page that the person sees first. Undefined if it is not a web address. */
  async #pageUrlOf({ sessionId, pageId }: HandoffRow): Promise<URL | undefined> {
    const { browser } = this.#parts.liveSessions.get(sessionId) ?? {};
    const pages = (await browser?.listPages().catch(() => undefined)) ?? [];
    const url = URL.parse((pages.find(({ id }) => id === pageId) ?? pages.at(-1))?.url ?? '');
    return url && url.origin !== 'null' ? url : undefined;
  }
}

const hasLease = ({ bearer }: PresentedCredentials): boolean => bearer?.startsWith('bhl_') === true;

const belongsToKey = ({ keyId, requesterId }: HandoffRow, caller: AgentCaller): boolean =>
  keyId === caller.keyId || requesterId === caller.keyId;

const isRequester = ({ requesterId }: HandoffRow, caller: ApiCaller): boolean =>
  requesterId === (caller.kind === 'agentKey' ? caller.keyId : caller.accountId);

const ownerOf = (caller: ApiCaller): KeyId | string => (caller.kind === 'agentKey' ? caller.keyId : caller.via.id);

const requesterOf = (caller: AgentCaller | AccountCaller): Requester =>
  caller.kind === 'agentKey'
    ? {
        ...{ kind: 'agent_key', id: caller.keyId, origin: 'api', source: byAgent(caller) },
        actor: { kind: 'agentKey', id: caller.keyId },
      }
    : {
        ...{ kind: 'account', id: caller.accountId, origin: 'api', source: byCaller(caller) },
        actor: { kind: 'viewer', id: caller.accountId },
      };

const holderSource = ({ holderKind, holderId }: HandoffRow, { source }: PresentedCredentials) => ({
  actor:
    (holderKind === 'account' || holderKind === 'consumer') && holderId
      ? ({ kind: holderKind, id: holderId } as const)
      : ANONYMOUS.actor,
  ...source,
});

const invalidSecret = (): Error =>
  fault('invalid_credentials', 'The credential is not valid for this hand-off.', {
    advice: 'Open the link exactly as you received it, or ask for a new link.',
  });

const holderRequired = (): Error =>
  fault(
    'invalid_credentials',
    'This operation requires the lease token (bhl_…), which is returned when the hand-off is claimed.',
    {
      details: { expected: 'handoff_lease' },
    },
  );

const personRequired = (): Error =>
  fault(
    'invalid_credentials',
    'Only a person can claim a hand-off. Send a sign-in cookie or the secret of a claim link.',
    {
      details: { expected: 'human_session' },
    },
  );

function notForMembers({ id, claimableBy }: HandoffRow): Error {
  if (claimableBy === 'end_user')
    return fault('permission_denied', `Hand-off ${id} can be claimed only by the end user named in the hand-off.`, {
      advice: 'Ask that user to claim it.',
    });
  if (claimableBy === 'viewer')
    return fault('permission_denied', `Hand-off ${id} belongs to a viewer who has taken control of the session.`, {
      advice: 'Open the live view of the session to take control.',
    });
  return fault('permission_denied', `Hand-off ${id} can be claimed only with its link.`, {
    advice: 'Ask the requester of the hand-off for the link, and open it.',
  });
}

const wrongBrowser = ({ id }: HandoffRow): Error =>
  fault('already_claimed', 'The link was opened in another browser and works only in that browser.', {
    advice: 'Use the other browser, or ask for a new link.',
    details: { handoffId: id },
  });
