// The network watcher: validates the network settings of a create request, applies them before the browser can connect,
// records refusals as events, and counts bytes in the session row if the session has proxies or a budget. Without
// network settings, the policy has no rules for hosts and no proxies, and navigations are not checked.

import type { CreateSession } from '../../../contract/sessions.ts';
import type { Refusal } from '../../engines/egress/egress.ts';
import type { ProxyFailureKind } from '../../engines/egress/failure.ts';
import type { EgressPolicy } from '../../engines/egress/policy.ts';
import type { EventRows } from '../../engines/store/rows/events.ts';
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { fault } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { BlockedNavigation } from '../logs/log-book.ts';
import type { DecidedEnd } from '../sessions/actors.ts';
import type { SessionRequest, SessionView } from '../sessions/api.ts';
import type { Attendance, Preparation } from '../sessions/attendance.ts';
import type { LiveSession } from '../sessions/live.ts';
import type { CheckResult, Watcher } from '../sessions/watchers.ts';
import { normalizeHostNames } from './host-names.ts';
import { Ledger } from './ledger.ts';
import { Meter } from './meter.ts';
import type { ProxyPool, StoredProxy } from './pools.ts';
import { type ProxyParts, type Route, type Routes, routesOf } from './proxies.ts';

export interface HostRules {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly default: 'allow' | 'deny';
}

/** The parts of a session's egress policy. */
export interface PolicyOptions {
  readonly hosts?: HostRules | undefined;
  readonly blockAds: boolean;
  readonly routes: readonly Route[];
}

/** The parts of the egress engine that this domain uses. */
export interface NetworkEngine {
  policy(options: PolicyOptions): EgressPolicy;
  hostMatcher(rules: HostRules): (hostname: string) => boolean;
  /** The policy that refuses every connection and reports that the budget is used up. */
  readonly usedUpPolicy: EgressPolicy;
  readonly pools: readonly ProxyPool[];
  readonly canBlockAds: boolean;
  /** Whether browsers run in a jail, where the egress proxy is their only connection to the network. */
  readonly isJailed: boolean;
  readonly patternErrors: ProxyParts['patternErrors'];
  /** Tests a proxy. Resolves with the problem, or with undefined if the proxy works. */
  probe(
    storedProxy: StoredProxy,
    signal: AbortSignal,
  ): Promise<{ trouble: ProxyFailureKind | 'address_refused'; words: string } | undefined>;
}

/**
 * Encrypts the routes of a session, which contain passwords. Text that was sealed for one session cannot be opened for
 * another.
 */
export interface RouteSeal {
  close(text: string, session: SealOwner): Promise<string>;
  open(sealedText: string, session: SealOwner): Promise<string>;
}

interface SealOwner {
  readonly id: SessionId;
  readonly applicationId: ApplicationId;
}

export interface NetworkParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly engine: NetworkEngine;
  readonly rows: Pick<SessionRows, 'setTraffic'>;
  readonly events: Pick<EventRows, 'append'>;
  readonly seal: RouteSeal;
  readonly end: (id: SessionId, end: DecidedEnd) => Promise<unknown>;
  /** Adds the blocked navigation to the log of the session. */
  readonly onBlocked: (id: SessionId, attempt: BlockedNavigation) => void;
}

/** The events of failed hosts and of refused pages must leave room for the other events of the session. */
const FAILURE_BOUNDS = { entriesMax: 50, eventsMax: 50 };
const PAGE_BOUNDS = { entriesMax: 1, eventsMax: 50 };

interface StoredNetwork {
  /** Rules for all traffic that leaves the browser. */
  readonly hosts?: HostRules | undefined;
  /** Rules for documents (pages and frames) only. */
  readonly documents?: HostRules | undefined;
  readonly domains?: readonly string[] | undefined;
  readonly timeZone?: string | undefined;
  /** Routes as encrypted JSON. */
  readonly routes?: string | undefined;
}

export class Network implements Watcher {
  readonly name = 'network';
  readonly #parts: NetworkParts;
  readonly #meters = new Map<SessionId, Meter>();

  constructor(parts: NetworkParts) {
    this.#parts = parts;
  }

  async check(
    { applicationId }: AgentCaller,
    { watcherSettings, settings }: SessionRequest,
    id: SessionId,
    signal: AbortSignal,
  ): Promise<CheckResult | undefined> {
    const { engine, seal } = this.#parts;
    if (settings.blockAds && !engine.canBlockAds)
      throw featureUnavailable('browserSettings.blockAds', 'has no list of ad hosts');
    const domains =
      watcherSettings.allowedDomains &&
      normalizeHostNames(watcherSettings.allowedDomains, 'browserSettings.allowedDomains');
    const rules = watcherSettings.networkPolicy && this.#hostRules(watcherSettings.networkPolicy);
    const requestedRoutes: Routes = watcherSettings.proxies
      ? routesOf(watcherSettings.proxies, id, engine)
      : { routes: [] };
    await this.#assertProxiesReachable(requestedRoutes.routes, signal);
    const { routes, timeZone } = requestedRoutes;
    if (!rules && !domains && routes.length === 0) return undefined;
    const sealedRoutes =
      routes.length > 0 ? await seal.close(JSON.stringify(routes), { id, applicationId }) : undefined;
    return {
      storedSettings: toJson({
        ...rules,
        ...(domains ? { domains } : {}),
        ...(timeZone && settings.timezoneId === undefined ? { timeZone } : {}),
        ...(sealedRoutes === undefined ? {} : { routes: sealedRoutes }),
      }),
    };
  }

  /**
   * Returns the time zone of the operator's proxy as an environment variable for the start of the browser. The same
   * variable is used for a time zone that the caller requests (`timezoneId` in sessions/settings.ts).
   */
  async prepare(row: SessionRow): Promise<Preparation | undefined> {
    const { timeZone } = storedNetwork(row);
    return timeZone === undefined ? undefined : { env: { TZ: timeZone } };
  }

  async attend(liveSession: LiveSession, row: SessionRow): Promise<Attendance> {
    const { engine, events, clock, log } = this.#parts;
    const ledgerParts = { session: row.id, events, secrets: liveSession.secrets, clock, log };
    const ledger = new Ledger(ledgerParts);
    // Separate, because many failures or refused pages must not use up the events for refused hosts.
    const failureLedger = new Ledger(ledgerParts, FAILURE_BOUNDS);
    const pageLedger = new Ledger(ledgerParts, PAGE_BOUNDS);
    liveSession.browser.onPageRefused(() => pageLedger.count('page.refused', {}));
    // Navigations are guarded before the network is opened. Most sessions have no rules and do not wait here.
    const { domains, documents } = storedNetwork(row);
    if (domains || documents) await this.#guard(liveSession, { domains, documents }, ledger);
    const policy = engine.policy(await this.#policyOptions(row));
    const meter = this.#startMeter(liveSession, row);
    liveSession.egress.open(policy, {
      redactText: text => liveSession.secrets.clean(text),
      refused: ({ hostname, rule }: Refusal) => ledger.count('network.refused', { hostname, rule }),
      failed: ({ hostname, kind }) => failureLedger.count('network.failed', { hostname, reason: kind }),
      proxyFailed: ({ proxy, kind }) => ledger.count('proxy.failed', { proxy, reason: kind }),
    });
    return {
      leave: async () => {
        meter?.close();
        await Promise.all([
          ledger.close(),
          failureLedger.close(),
          pageLedger.close(),
          meter && this.#saveTraffic(row.id, meter),
        ]);
      },
    };
  }

  /** Saves the number of bytes that were transferred while the browser was being closed. */
  async salvage(row: SessionRow): Promise<void> {
    const meter = this.#meters.get(row.id);
    this.#meters.delete(row.id);
    if (meter) await this.#saveTraffic(row.id, meter);
  }

  async describe(row: SessionRow): Promise<Partial<SessionView>> {
    const meter = this.#meters.get(row.id);
    const { hosts, documents, domains } = storedNetwork(row);
    const rules = hosts ?? documents;
    return {
      ...(meter ? { proxyBytes: meter.traffic.proxyBytes } : {}),
      browserSettings: {
        ...(domains ? { allowedDomains: [...domains] } : {}),
        ...(rules ? { networkPolicy: { ...rules, subresources: hosts !== undefined } } : {}),
      },
    };
  }

  ended(row: SessionRow): void {
    this.#meters.delete(row.id);
  }

  #hostRules(requestedPolicy: RequestedPolicy): Pick<StoredNetwork, 'hosts' | 'documents'> | undefined {
    const { allow = [], deny = [], default: defaultRule = 'allow', subresources = true } = requestedPolicy;
    const path = 'browserSettings.networkPolicy';
    const rules: HostRules = {
      allow: normalizeHostNames(allow, `${path}.allow`),
      deny: normalizeHostNames(deny, `${path}.deny`),
      default: defaultRule,
    };
    if (rules.deny.length === 0 && rules.default === 'allow') return undefined;
    // Rules for documents are enforced in the browser. Rules for all traffic need the jail, where the egress proxy is
    // the only connection to the network.
    if (!subresources) return { documents: rules };
    if (!this.#parts.engine.isJailed)
      throw featureUnavailable(path, 'runs browsers without a jail and cannot enforce the policy');
    return { hosts: rules };
  }

  async #assertProxiesReachable(routes: readonly Route[], signal: AbortSignal): Promise<void> {
    const externalProxies = routes.flatMap(({ by }) => (by === 'direct' || by.trusted ? [] : [by]));
    const probeResults = await Promise.all(
      externalProxies.map(async by => ({ by, trouble: await this.#parts.engine.probe(by, signal) })),
    );
    for (const { by, trouble } of probeResults)
      if (trouble)
        throw fault('proxy_unreachable', `The proxy in ${by.name} cannot be used. ${trouble.words}`, {
          advice:
            trouble.trouble === 'address_refused'
              ? 'Use another proxy, or ask the operator to allow the address. No browser was started.'
              : 'Check the address, user name and password of the proxy. No browser was started.',
          details: { path: by.name, reason: trouble.trouble },
        });
  }

  #guard(liveSession: LiveSession, { domains, documents }: StoredNetwork, ledger: Ledger): Promise<void> {
    const { hostMatcher } = this.#parts.engine;
    const matchesAnyHost = (): boolean => true;
    const matchesDomains = domains ? hostMatcher({ allow: domains, deny: [], default: 'deny' }) : matchesAnyHost;
    const matchesDocuments = documents ? hostMatcher(documents) : matchesAnyHost;
    return liveSession.browser.guardNavigations({
      allows: (hostname, frame) => matchesDocuments(hostname) && (frame === 'inner' || matchesDomains(hostname)),
      onRefused: (hostname, { url = hostname, targetId }) => {
        const rule = matchesDocuments(hostname) ? 'allowed_domains' : 'network_policy';
        ledger.count(rule === 'network_policy' ? 'network.refused' : 'navigation.refused', { hostname, rule });
        const isCovered = liveSession.cover !== undefined;
        this.#parts.onBlocked(liveSession.id, { url, reason: rule, targetId, isCovered });
      },
    });
  }

  #startMeter(liveSession: LiveSession, row: SessionRow): Meter | undefined {
    const budget = typeof row.settings.egressBytes === 'number' ? row.settings.egressBytes : undefined;
    if (budget === undefined && storedNetwork(row).routes === undefined) return undefined;
    const { engine, end, clock } = this.#parts;
    const meter = new Meter({
      row,
      egress: liveSession.egress,
      budget,
      clock,
      save: traffic => this.#parts.rows.setTraffic(row.id, traffic),
      onUsedUp: () => {
        liveSession.egress.replacePolicy(engine.usedUpPolicy);
        const detail = `the session used up its egressBytes (${budget})`;
        void end(row.id, { status: 'ERROR', reason: 'egress_limit', detail }).catch(() => {});
      },
    });
    this.#meters.set(row.id, meter);
    void meter.run();
    return meter;
  }

  #saveTraffic(id: SessionId, meter: Meter): Promise<void> {
    return this.#parts.rows.setTraffic(id, meter.traffic);
  }

  async #policyOptions(row: SessionRow): Promise<PolicyOptions> {
    const { hosts, routes } = storedNetwork(row);
    return {
      hosts,
      blockAds: row.settings.blockAds === true,
      routes: routes === undefined ? [] : JSON.parse(await this.#parts.seal.open(routes, row)),
    };
  }
}

type RequestedPolicy = NonNullable<NonNullable<CreateSession['browserSettings']>['networkPolicy']>;

/** The settings that `check` stored with the session. */
const storedNetwork = (row: SessionRow): StoredNetwork => (row.settings.network ?? {}) as StoredNetwork;

const toJson = (value: StoredNetwork): JsonObject => JSON.parse(JSON.stringify(value));

const featureUnavailable = (field: string, why: string): Error =>
  fault('feature_unavailable', `${field} is not available: this installation ${why}.`, {
    advice: 'Omit the setting. The session was not created.',
    details: { field },
  });
