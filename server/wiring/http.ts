// The wiring of the HTTP server: the services that it calls, its MCP endpoint and web files, and the listeners for the
// operator and for other hosts.
import { join } from 'node:path';
import type { Links } from '../domain/files/links.ts';
import type { Identity } from '../domain/identity/identity.ts';
import { listenForPeers } from '../entry/forward/peer-listener.ts';
import { type OperatorListener, openOperator } from '../entry/http/operator.ts';
import { type Http, openHttp } from '../entry/http/server.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Metrics } from '../metrics.ts';
import { version } from '../version.ts';
import type { OpenedActions } from './actions.ts';
import type { Admission } from './admission.ts';
import { openConsumerActions } from './consumers.ts';
import { openFrontEnd } from './devtools.ts';
import type { Driving } from './driving.ts';
import type { Families } from './families.ts';
import type { Foundation } from './foundation.ts';
import type { OpenedHost } from './host.ts';
import type { openInvocations } from './invocations.ts';
import { peerAddress } from './listeners.ts';
import { openMcp } from './mcp.ts';
import { offeredChoicesOf } from './offered.ts';
import { readiness } from './readiness.ts';
import { openServiceDocuments } from './service-documents.ts';
import type { OpenedSessions } from './sessions.ts';

/** The output folder of tools/build-web.ts. */
const WEB_FOLDER = join(import.meta.dirname, '../../.berth/web');

export interface WebDeps {
  readonly identity: Identity;
  readonly admission: Admission;
  readonly families: Families;
  readonly sessions: OpenedSessions;
  readonly host: OpenedHost;
  readonly driving: Driving;
  readonly invocations: ReturnType<typeof openInvocations>;
  readonly actions: OpenedActions;
  readonly metrics: Metrics;
}

/** Returns undefined if the operator has turned this listener off. */
export async function openOperatorListener(
  foundation: Foundation,
  { sessions, metrics }: Pick<WebDeps, 'sessions' | 'metrics'>,
): Promise<OperatorListener | undefined> {
  const listen = foundation.config.operatorListen;
  if (!listen) return undefined;
  const checkReadiness = () => readiness(foundation, sessions.pool);
  return foundation.scope.own(await openOperator({ listen, checkReadiness, metrics: metrics.registry }));
}

/** Returns undefined for an invalid link. The operation that serves links refuses such a link itself. */
function readLinkedObject(links: Links, token: string): string | undefined {
  try {
    return links.read(token).object;
  } catch {
    return undefined;
  }
}

export async function openWeb(runtime: Runtime, foundation: Foundation, deps: WebDeps): Promise<Http> {
  const { config, workers, scope, signingKeys, links } = foundation;
  const { identity, admission, families, sessions, host, driving, invocations, actions, metrics } = deps;
  const frontEnd = scope.own(openFrontEnd(runtime, foundation, sessions.browserHost));
  const mcp = openMcp(foundation, {
    ...{ sessions: sessions.service, live: families.live.service, uploads: families.files.service.uploads, driving },
    ...{ handoffs: families.handoffs, invocations: invocations.service, actions: actions.service.agent },
  });
  const { listen, publicUrl, compat, trustedProxies, s3 } = config;
  const http = scope.own(
    await openHttp({
      ...runtime,
      ...{ listen, publicUrl, compat, trustedProxies, workers, identity, frontEnd },
      offeredChoices: offeredChoicesOf(foundation),
      ...{ version: version(), incomingDir: join(config.dataDir, 'incoming') },
      limits: admission.limits,
      usage: families.usage.service,
      credits: families.credits.service,
      topUps: families.credits.topUps,
      host: { thisHost: host.service, allHosts: host.hosts },
      rates: admission.rates,
      waitingBytes: admission.waitingBytes,
      people: families.people.service,
      ...consumersOf(runtime, foundation, deps),
      members: families.members.service,
      device: families.device.service,
      actions: actions.service,
      documents: openServiceDocuments(foundation),
      sessions: sessions.service,
      contexts: families.contexts.service,
      certificates: families.certificates.service,
      extensions: families.extensions.service,
      recordings: families.recordings.service,
      logs: families.logs.service,
      files: families.files.service,
      live: families.live.service,
      handoffs: families.handoffs.service,
      mcp,
      invocations: invocations.service,
      applicationInvocations: invocations.ofApplication,
      configuredOperations: families.configuredOperations.service,
      storedCredentials: families.storedCredentials.service,
      events: families.events.service,
      webhooks: families.webhooks.service,
      audit: families.audit.service,
      ...{ outbox: families.mail.outbox, inbox: actions.inbox },
      signingKeys,
      idempotency: families.idempotency.service,
      discover: (id, credentials) => sessions.connector.discover(id, credentials),
      forwarding: sessions.forwarding,
      linkedObject: token => readLinkedObject(links, token),
      metrics: metrics.registry,
      web: {
        folder: WEB_FOLDER,
        linkOrigins: [new URL(publicUrl).origin, ...(s3?.endpoint ? [s3.endpoint] : [])],
      },
    }),
  );
  return withPeerListener(runtime, foundation, http);
}

async function withPeerListener(
  { clock }: Pick<Runtime, 'clock'>,
  { config, scope, peerTls }: Foundation,
  http: Http,
): Promise<Http> {
  const address = peerAddress(config);
  if (!address) return http;
  const listener = scope.own(
    await listenForPeers(http.server, address, 'port' in address ? peerTls.certificate : undefined, clock),
  );
  peerTls.onRenewed(certificate => listener.renew(certificate));
  return http;
}

const consumersOf = (
  runtime: Runtime,
  foundation: Foundation,
  { families, actions }: Pick<WebDeps, 'families' | 'actions'>,
) => ({
  consumers: families.consumers.service,
  consumerParts: openConsumerActions(runtime, foundation, {
    ...{ decisions: actions.decisions, consumers: families.consumers.service },
    handoffs: families.handoffs.service,
    catalogue: families.configuredOperations.catalogue,
  }),
});
