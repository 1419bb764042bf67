// A session's tunnel to the public host and port of this service is not connected over the network, but handled in this
// process. The receiver of the connection decides which requests it accepts.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer, type SecureContextOptions, type Server } from 'node:tls';
import { guardListener } from '../../kit/guard.ts';
import type { EgressLimits } from './limits.ts';
import { parseAuthority, type Target } from './target.ts';

export interface SelfRoute {
  /** The `URL.hostname` of the service's public URL, such as `browsers.example` or `[::1]`. */
  readonly hostname: string;
  /** The port of the public URL, or the default of its scheme. */
  readonly port: number;
  /** The certificate, if the public URL is https. */
  readonly tls?: Pick<SecureContextOptions, 'cert' | 'key'>;
  /** Handles the decrypted connection. Must serve only the connect path of this session. */
  accept(connection: Duplex): void;
}

export class OwnAddress {
  readonly #route: SelfRoute;
  readonly #target: Target;
  readonly #limits: EgressLimits;
  #tlsServer: Server | undefined;

  constructor(route: SelfRoute, limits: EgressLimits) {
    this.#route = route;
    const target = parseAuthority(`${route.hostname}:${route.port}`);
    if (!target) throw new TypeError(`${route.hostname}:${route.port} is not a valid host and port`);
    this.#target = target;
    this.#limits = limits;
  }

  matches(target: Target): boolean {
    return target.hostname === this.#target.hostname && target.port === this.#target.port;
  }

  /** Handles the tunnel in this process. Call after the browser has received the 200 for its CONNECT. */
  accept(browser: Socket): void {
    const { tls } = this.#route;
    if (!tls) return this.#route.accept(browser);
    this.#tlsServer ??= this.#createTlsServer(tls);
    this.#tlsServer.emit('connection', browser);
  }

  #createTlsServer({ cert, key }: Pick<SecureContextOptions, 'cert' | 'key'>): Server {
    const server = createServer({
      cert,
      key,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: this.#limits.tlsHandshakeMs,
    });
    const accept = (connection: Duplex): void => {
      connection.on('error', () => connection.destroy());
      this.#route.accept(connection);
    };
    server.on(
      'secureConnection',
      guardListener((_, [connection]) => connection.destroy(), accept),
    );
    // The browser has already received the error through TLS.
    server.on('tlsClientError', (_error, connection) => connection.destroy());
    return server;
  }
}
