// Tests a proxy before a browser is started with it: whether the proxy can be reached, is trusted and accepts the
// credentials. An HTTP proxy receives a CONNECT request for a name that does not exist. Any response from a proxy is a
// success, unless the proxy refuses the credentials.
import { withTimeout } from '../../kit/wait.ts';
import { FailedError, ProxyFailedError } from './failure.ts';
import { sendConnect } from './http-tunnel.ts';
import { reachUpstream, type UpstreamConnection, type UpstreamOptions } from './reach-upstream.ts';
import { greetSocks } from './socks5.ts';
import type { Target } from './target.ts';
import type { Upstream } from './upstream.ts';

/** If the proxy is down, the creation of a session must fail within ten seconds. */
const PROBE_TIMEOUT_MS = 8_000;
/** RFC 6761: `.invalid` never resolves. */
const UNRESOLVABLE_TARGET = { hostname: 'berth-probe.invalid', port: 443 };
/** Statuses with which web servers respond to CONNECT. Proxies respond with other statuses. */
const WEB_SERVER_STATUSES: ReadonlySet<number> = new Set([400, 405, 501]);

/** Rejects with ProxyFailedError, or with RefusedError if the session may not reach the proxy's address. */
export async function probeUpstream(upstream: Upstream, options: UpstreamOptions, signal: AbortSignal): Promise<void> {
  try {
    await withTimeout(PROBE_TIMEOUT_MS, 'a proxy to answer', inner => probe(upstream, options, inner), signal);
  } catch (error) {
    if (signal.aborted || error instanceof ProxyFailedError || !isFailure(error)) throw error;
    throw new ProxyFailedError(
      error.name === 'WaitExpired' ? 'proxy_timed_out' : 'proxy_unreachable',
      upstream.name,
      error,
    );
  }
}

/**
 * Tests the proxy with up to two targets. Some proxies close the connection when they cannot reach the first target,
 * which does not exist, so the second is the proxy's own address.
 */
async function probe(upstream: Upstream, options: UpstreamOptions, signal: AbortSignal): Promise<void> {
  for (const target of [UNRESOLVABLE_TARGET, { hostname: upstream.hostname, port: upstream.port }])
    if (await tryTarget(upstream, target, options, signal)) return;
  throw new ProxyFailedError('proxy_unreachable', upstream.name);
}

async function tryTarget(
  upstream: Upstream,
  target: Target,
  options: UpstreamOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const connection = await reachUpstream(upstream, options, signal);
  const onAbort = (): void => void connection.socket.destroy();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await requestTunnel(upstream, target, connection);
  } finally {
    signal.removeEventListener('abort', onAbort);
    connection.socket.destroy();
    connection.raw.destroy();
  }
}

/** Sends the test request. Returns false if the proxy closed the connection without a response. */
async function requestTunnel(upstream: Upstream, target: Target, { socket }: UpstreamConnection): Promise<boolean> {
  if (upstream.scheme === 'socks5') {
    await greetSocks(socket, upstream);
    return true;
  }
  const status = await sendConnect(socket, upstream, target).catch(ignoreHangUp);
  if (status === 407) throw new ProxyFailedError('proxy_refused_user', upstream.name);
  if (status !== undefined && WEB_SERVER_STATUSES.has(status)) throw new ProxyFailedError('not_a_proxy', upstream.name);
  return status !== undefined;
}

function ignoreHangUp(error: unknown): undefined {
  if (!(error instanceof FailedError && error.kind === 'host_not_reached')) throw error;
}

const isFailure = (error: unknown): error is Error => error instanceof Error && error.name !== 'Refused';
