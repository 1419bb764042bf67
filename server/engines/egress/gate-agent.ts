// The http.Agent of one browser connection: opens connections through the gate, and keeps one idle connection.
import { Agent, type ClientRequestArgs } from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, PassThrough } from 'node:stream';
import type { BigReads } from './big-reads.ts';
import type { Gate } from './gate.ts';
import { RequestSocket } from './request-socket.ts';
import { type Target, targetAt } from './target.ts';
import type { Upstream } from './upstream.ts';

/** The options of a request, with the proxy to which the request is sent. */
export interface GateRequestArgs extends ClientRequestArgs {
  readonly upstream?: Upstream | undefined;
}

/**
 * Passed to the callback together with an error, because the type of the callback requires a stream. Node ignores the
 * stream.
 */
const NO_STREAM: Duplex = new PassThrough();

export class GateAgent extends Agent {
  readonly #gate: Gate;
  readonly #bigReads: BigReads;
  readonly #sockets = new Set<Socket>();
  readonly #closeController = new AbortController();

  constructor(gate: Gate, bigReads: BigReads) {
    super({ keepAlive: true, maxFreeSockets: 1 });
    this.#gate = gate;
    this.#bigReads = bigReads;
  }

  override createConnection(
    { host, port, upstream }: GateRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    const target = targetAt(host ?? '', Number(port));
    if (!target || !callback) throw new TypeError('createConnection needs a valid host and port, and a callback');
    this.#open(target, upstream).then(
      socket => callback(null, socket),
      (error: Error) => callback(error, NO_STREAM),
    );
    return undefined;
  }

  /** Closes all idle connections except those to `target`. */
  keepOnly(target: Target | undefined): void {
    const keptName = target && this.getName({ host: target.hostname, port: target.port });
    for (const [name, sockets] of Object.entries(this.freeSockets)) {
      if (name === keptName) continue;
      for (const socket of sockets ?? []) socket.destroy();
    }
  }

  override destroy(): void {
    this.#closeController.abort(new Error('the browser closed the connection'));
    for (const socket of this.#sockets) socket.destroy();
    super.destroy();
  }

  async #open(target: Target, upstream: Upstream | undefined): Promise<Socket> {
    const { signal } = this.#closeController;
    const createSocket = (): RequestSocket => new RequestSocket(this.#bigReads);
    const socket = upstream
      ? await this.#gate.openProxy(upstream, target, createSocket, signal)
      : await this.#gate.open(target, createSocket, signal);
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    if (this.#closeController.signal.aborted) socket.destroy();
    return socket;
  }
}
