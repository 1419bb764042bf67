// The wiring of a session's network: the operator's rules, those of the session, and the egress engine. The operator's
// files are read here once, at the start.
import { Network, type NetworkEngine, type NetworkParts } from '../domain/network/network.ts';
import type { StoredProxy } from '../domain/network/pools.ts';
import { type AdHosts, readAdHosts } from '../engines/egress/ad-hosts.ts';
import { ProxyFailedError, RefusedError } from '../engines/egress/failure.ts';
import { hostMatcher } from '../engines/egress/host-rules.ts';
import { EGRESS_LIMITS } from '../engines/egress/limits.ts';
import { closedPolicy, type EgressPolicy, egressPolicy } from '../engines/egress/policy.ts';
import { probeUpstream } from '../engines/egress/probe-upstream.ts';
import { createResolver } from '../engines/egress/resolve.ts';
import { patternErrors, routerOf } from '../engines/egress/routes.ts';
import type { Upstream } from '../engines/egress/upstream.ts';
import { badValue } from '../kit/environment.ts';
import type { Log } from '../kit/log.ts';
import type { Runtime } from '../kit/runtime.ts';
import { Secret } from '../kit/secret.ts';
import type { Foundation } from './foundation.ts';
import { operatorAddresses } from './operator-addresses.ts';
import { readOperatorFile } from './operator-file.ts';
import { readProxyPools } from './proxy-pools.ts';
import { routeSeal } from './vault.ts';

export interface NetworkDeps {
  readonly endSession: NetworkParts['end'];
  /** Called when a navigation was refused. */
  readonly onNavigationBlocked: NetworkParts['onBlocked'];
}

export async function openNetwork(
  runtime: Runtime,
  foundation: Foundation,
  { endSession, onNavigationBlocked: blocked }: NetworkDeps,
) {
  const { clock, log } = runtime;
  const { store, secret, vault } = foundation;
  const engine = await openNetworkEngine(runtime, foundation);
  const seal = routeSeal(vault, secret);
  const { sessions: rows, events } = store;
  return { watcher: new Network({ engine, rows, events, seal, end: endSession, onBlocked: blocked, clock, log }) };
}

async function openNetworkEngine({ clock, log }: Runtime, { config, slots }: Foundation): Promise<NetworkEngine> {
  const addressOptions = operatorAddresses(config, clock);
  const adMatcher = config.adblockList === undefined ? undefined : await readList(config.adblockList, log);
  const policy = egressPolicy(addressOptions);
  return {
    policy: ({ hosts, blockAds, routes: chosenRoutes }) =>
      egressPolicy({
        ...addressOptions,
        isAllowedHost: hosts && hostMatcher(hosts),
        isAdHost: blockAds ? adMatcher : undefined,
        routeTo:
          chosenRoutes.length === 0
            ? undefined
            : routerOf(chosenRoutes.map(({ pattern, by }) => ({ pattern, by: upstreamOf(by) }))),
      }),
    hostMatcher,
    usedUpPolicy: closedPolicy('egress_limit'),
    pools: config.proxyPools === undefined ? [] : readProxyPools(config.proxyPools),
    canBlockAds: adMatcher !== undefined,
    isJailed: slots.form !== 'process',
    patternErrors,
    probe: (storedProxy, signal) =>
      probe(storedProxy, policy, createResolver({ hosts: config.egressHosts, clock }), signal),
  };
}

async function probe(
  storedProxy: StoredProxy,
  policy: EgressPolicy,
  resolve: ReturnType<typeof createResolver>,
  signal: AbortSignal,
): ReturnType<NetworkEngine['probe']> {
  const upstream = upstreamOf(storedProxy);
  if (upstream === 'direct') return undefined;
  const check = (...[address, port]: Parameters<EgressPolicy['checkAddress']>) => {
    const verdict = policy.checkAddress(address, port);
    if (!verdict.isAllowed) throw new RefusedError(verdict.rule);
  };
  try {
    await probeUpstream(upstream, { resolve, check, limits: EGRESS_LIMITS }, signal);
    return undefined;
  } catch (error) {
    if (error instanceof ProxyFailedError) return { trouble: error.proxyFailureKind, words: error.message };
    if (!(error instanceof RefusedError)) throw error;
    const words = `Sessions may not reach its address (${error.rule}). The operator can allow it with BERTH_EGRESS_ALLOW.`;
    return { trouble: 'address_refused', words };
  }
}

function upstreamOf(storedProxy: StoredProxy | 'direct'): Upstream | 'direct' {
  if (storedProxy === 'direct') return storedProxy;
  const { username, password, ...rest } = storedProxy;
  if (username === undefined && password === undefined) return rest;
  return { ...rest, credentials: { username: username ?? '', password: new Secret(password ?? '') } };
}

async function readList(file: string, log: Log): Promise<AdHosts['isAdHost']> {
  const { isAdHost, rules, skippedLines } = await readAdHosts(readOperatorFile('BERTH_ADBLOCK_LIST', file));
  if (rules === 0)
    throw badValue(
      'BERTH_ADBLOCK_LIST',
      file,
      'a file with host names, or with Adblock Plus rules for hosts (||ads.test^)',
    );
  log.info('network.adblock_list', { rules, skippedLines });
  return isAdHost;
}
