// The session's way to its own connect address (a tunnel to the service's public host and port): it is answered in
// this process and never dialled. What may be asked there is decided by whoever accepts the connection.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer, type SecureContextOptions, type Server } from 'node:tls';
import { guarded } from '../../kit/guard.ts';
import type { EgressLimits } from './limits.ts';
import { authorityTarget, type Target } from './target.ts';

export interface SelfRoute {
  /** Of the service's public URL, as `URL.hostname` writes it: `browsers.example`, `[::1]`. */
  readonly hostname: string;
  /** With the scheme's own port filled in. */
  readonly port: number;
  /** Where the public URL is https: what TLS is terminated with. */
  readonly tls?: Pick<SecureContextOptions, 'cert' | 'key'>;
  /** Takes the connection over, already decrypted. Must serve this session's connect path and nothing else. */
  accept(connection: Duplex): void;
}

export class OwnAddress {
  readonly #route: SelfRoute;
  readonly #target: Target;
  readonly #limits: EgressLimits;
  #terminator: Server | undefined;

  constructor(route: SelfRoute, limits: EgressLimits) {
    this.#route = route;
    const target = authorityTarget(`${route.hostname}:${route.port}`);
    if (!target) throw new TypeError(`${route.hostname}:${route.port} is no address of a service`);
    this.#target = target;
    this.#limits = limits;
  }

  is(target: Target): boolean {
    return target.hostname === this.#target.hostname && target.port === this.#target.port;
  }

  /** The browser has been told that its tunnel stands. */
  accept(browser: Socket): void {
    const { tls } = this.#route;
    if (!tls) return this.#route.accept(browser);
    this.#terminator ??= this.#terminate(tls);
    this.#terminator.emit('connection', browser);
  }

  #terminate({ cert, key }: Pick<SecureContextOptions, 'cert' | 'key'>): Server {
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
      guarded((_, [connection]) => connection.destroy(), accept),
    );
    // Without TLS, or not trusted: the browser is told by TLS itself, and the rest is closing the door.
    server.on('tlsClientError', (_error, connection) => connection.destroy());
    return server;
  }
}
