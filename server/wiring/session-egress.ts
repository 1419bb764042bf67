// The wiring of each browser's egress proxy, which refuses everything until the session's network is opened.
// Connections to the session's own connect address are routed through the proxy back to this server.
import { createServer } from 'node:http';
import type { CertificateFiles, Config } from '../config.ts';
import type { BrowserHost } from '../domain/sessions/browser-host.ts';
import type { OutboundEndpoints } from '../engines/egress/departures.ts';
import { openEgress } from '../engines/egress/egress.ts';
import { closedPolicy } from '../engines/egress/policy.ts';
import { createResolver } from '../engines/egress/resolve.ts';
import type { SelfRoute } from '../engines/egress/self-route.ts';
import type { CdpEntry } from '../entry/cdp/upgrade.ts';
import type { SessionId } from '../kit/ids.ts';
import type { Runtime } from '../kit/runtime.ts';
import { readOperatorFile } from './operator-file.ts';

const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

export function openSessionEgress(
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  config: Config,
  outboundEndpoints: OutboundEndpoints,
  cdp: Pick<CdpEntry, 'serve'>,
): Pick<BrowserHost, 'openEgress'> {
  const ownRoute = ownRouteTo(cdp, config);
  const openBoxEgress: BrowserHost['openEgress'] = box => {
    let owner: SessionId | undefined;
    const egress = openEgress({
      server: box.egress,
      policy: closedPolicy('no_session'),
      resolve: createResolver({ hosts: config.egressHosts, clock }),
      log: log.with({ box: box.session }),
      clock,
      outboundEndpoints,
      ...ownRoute(() => owner),
    });
    return {
      assign: session => {
        owner = session;
      },
      open: (policy, listener) => {
        egress.replaceListener(listener);
        egress.replacePolicy(policy);
      },
      replacePolicy: policy => egress.replacePolicy(policy),
      counters: () => egress.counters(),
      close: () => egress.close(),
    };
  };
  return { openEgress: openBoxEgress };
}

function ownRouteTo(
  cdp: Pick<CdpEntry, 'serve'>,
  { publicUrl, tls }: Config,
): (owner: () => SessionId | undefined) => { self?: SelfRoute } {
  const { protocol, hostname, port } = new URL(publicUrl);
  // If this server has no certificate for its https address, a reverse proxy in front of it terminates TLS. Connections
  // to that address are then treated like all others.
  if (protocol === 'https:' && !tls) return () => ({});
  const certificate = protocol === 'https:' && tls ? readCertificate(tls) : undefined;
  return owner => {
    const innerServer = createServer((_request, response) => response.writeHead(404).end());
    cdp.serve(innerServer, owner);
    const accept = (connection: object): void => void innerServer.emit('connection', connection);
    const self = { hostname, port: Number(port || PORTS[protocol]), accept };
    return { self: certificate ? { ...self, tls: certificate } : self };
  };
}

const readCertificate = ({ certFile, keyFile }: CertificateFiles): NonNullable<SelfRoute['tls']> => ({
  cert: readOperatorFile('BERTH_TLS_CERT', certFile),
  key: readOperatorFile('BERTH_TLS_KEY', keyFile),
});
