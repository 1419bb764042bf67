// Whether a proxy can be used at all: reached, trusted, and willing to serve this user. Asked before a browser is
// started for it. An HTTP proxy is asked for a name that nobody has: any answer but a refusal of the user will do.
import { within } from '../../kit/wait.ts';
import { Failed, ProxyFailed } from './failure.ts';
import { connectStatus } from './http-tunnel.ts';
import { reachUpstream, type UpstreamConnection, type UpstreamParts } from './reach-upstream.ts';
import { greetSocks } from './socks5.ts';
import type { Target } from './target.ts';
import type { Upstream } from './upstream.ts';

/** A create must hear of a dead proxy in less than ten seconds. */
const PROBE_MS = 8_000;
/** RFC 6761: no name server will ever know it. */
const NOBODY = { hostname: 'berth-probe.invalid', port: 443 };
/** What a web server says to CONNECT; a proxy says something else. */
const NO_PROXY: ReadonlySet<number> = new Set([400, 405, 501]);

/** Rejects with ProxyFailed, or with Refused where the session may not reach its address. */
export async function probeUpstream(upstream: Upstream, parts: UpstreamParts, signal: AbortSignal): Promise<void> {
  try {
    await within(PROBE_MS, 'a proxy to answer', inner => probe(upstream, parts, inner), signal);
  } catch (error) {
    if (signal.aborted || error instanceof ProxyFailed || !isOwn(error)) throw error;
    throw new ProxyFailed(error.name === 'WaitExpired' ? 'proxy_timed_out' : 'proxy_unreachable', upstream.name, error);
  }
}

/** Some proxies hang up on a host that they cannot reach. One that hangs up when asked for itself serves nobody. */
async function probe(upstream: Upstream, parts: UpstreamParts, signal: AbortSignal): Promise<void> {
  for (const target of [NOBODY, { hostname: upstream.hostname, port: upstream.port }])
    if (await answers(upstream, target, parts, signal)) return;
  throw new ProxyFailed('proxy_unreachable', upstream.name);
}

async function answers(
  upstream: Upstream,
  target: Target,
  parts: UpstreamParts,
  signal: AbortSignal,
): Promise<boolean> {
  const connection = await reachUpstream(upstream, parts, signal);
  const onAbort = (): void => void connection.socket.destroy();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await ask(upstream, target, connection);
  } finally {
    signal.removeEventListener('abort', onAbort);
    connection.socket.destroy();
    connection.raw.destroy();
  }
}

/** False: it hung up without a word. */
async function ask(upstream: Upstream, target: Target, { socket }: UpstreamConnection): Promise<boolean> {
  if (upstream.scheme === 'socks5') {
    await greetSocks(socket, upstream);
    return true;
  }
  const status = await connectStatus(socket, upstream, target).catch(hungUp);
  if (status === 407) throw new ProxyFailed('proxy_refused_user', upstream.name);
  if (status !== undefined && NO_PROXY.has(status)) throw new ProxyFailed('proxy_is_none', upstream.name);
  return status !== undefined;
}

function hungUp(error: unknown): undefined {
  if (!(error instanceof Failed && error.kind === 'host_not_reached')) throw error;
}

const isOwn = (error: unknown): error is Error => error instanceof Error && error.name !== 'Refused';
