// Sends the server's requests to user-supplied addresses: the targets of webhooks and of operations. Checks every
// address of a host name, connects to one of the checked addresses, and follows no redirect.
import { isIP, Socket } from 'node:net';
import { connect as connectTls, createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { WaitExpired, withDeadline, withTimeout } from '../../../kit/wait.ts';
import type { Address } from '../address.ts';
import { addressesOf } from '../addresses.ts';
import { dial } from '../dial.ts';
import { EGRESS_LIMITS } from '../limits.ts';
import type { Resolve } from '../resolve.ts';
import type { AddressRules } from '../rules.ts';
import { CallError, type CallFailure, errorCodeOf, failureOf } from './call-failure.ts';
import { type CallHeaders, headersOf } from './call-headers.ts';
import { type CallTarget, parseCallTarget } from './call-target.ts';
import { exchange, type Message, type ReceivedResponse } from './exchange.ts';
import { CALL_LIMITS, type CallLimits } from './limits.ts';

export interface OutboundCall {
  /** GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS. */
  readonly method: string;
  readonly url: string;
  readonly headers?: CallHeaders;
  readonly body?: Uint8Array;
  /** Time limit, in real milliseconds, from calling `send` to the last byte of the response. At most ten minutes. */
  readonly deadlineMs: number;
  /** The largest response body, in bytes. At most 64 MiB. */
  readonly maxResponseBytes: number;
}

export interface CallResponse extends ReceivedResponse {
  readonly kind: 'answered';
  readonly endpoint: {
    /** The checked address that the call was sent to. For the log of the server, not for callers of the API. */
    readonly address: string;
    readonly port: number;
    readonly isEncrypted: boolean;
  };
}

export type CallResult = CallResponse | CallFailure;

export interface OutboundOptions {
  readonly rules: AddressRules;
  /** Returns a resolver for one call. Nothing is cached between calls, so each call queries the name servers. */
  readonly resolver: () => Resolve;
  /** Certificate authorities (PEM) that are trusted in addition to those that Node trusts. */
  readonly authorities?: string | undefined;
  readonly limits?: Partial<CallLimits>;
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

interface ConnectedSocket {
  /** The socket for HTTP: the TLS socket for https, otherwise `raw`. */
  readonly socket: Socket;
  readonly raw: Socket;
  readonly address: Address;
}

export class OutboundCalls {
  readonly #options: OutboundOptions;
  readonly #limits: CallLimits;
  #context: SecureContext | undefined;

  /** Throws if `authorities` is not valid PEM. */
  constructor(options: OutboundOptions) {
    this.#options = options;
    this.#limits = { ...CALL_LIMITS, ...options.limits };
    if (options.authorities !== undefined) this.#secureContext();
  }

  /**
   * Returns the reason why a call to this URL would be refused now, or why its name cannot be resolved. Returns
   * undefined if the URL could be called. Opens no connection to the host.
   */
  async check(url: string, signal?: AbortSignal): Promise<CallFailure | undefined> {
    try {
      const target = parseCallTarget(url, this.#limits.urlCharactersMax);
      const { connectMs } = this.#limits;
      await withTimeout(connectMs, 'the name servers', inner => this.#addresses(target, inner), signal);
      return undefined;
    } catch (error) {
      return failureOf(signal?.aborted ? new CallError('cancelled') : error, false);
    }
  }

  /** Sends one request. Never rejects: a failure is returned as a CallFailure, with the phase in which it occurred. */
  async send(call: OutboundCall, signal?: AbortSignal): Promise<CallResult> {
    let isSent = false;
    const markSent = (): void => {
      isSent = true;
    };
    const deadlineMs = Math.min(call.deadlineMs, this.#limits.deadlineMsMax);
    try {
      const preparedCall = this.#prepare(call);
      return await withDeadline(deadlineMs, 'an answer', inner => this.#run(preparedCall, markSent, inner), signal);
    } catch (error) {
      return failureOf(signal?.aborted ? new CallError('cancelled') : error, isSent);
    }
  }

  #prepare(call: OutboundCall): { readonly target: CallTarget; readonly message: Message } {
    const limits = this.#limits;
    const { method, body } = call;
    const target = parseCallTarget(call.url, limits.urlCharactersMax);
    if (!METHODS.has(method)) throw new CallError('bad_method');
    if ((body?.length ?? 0) > limits.requestBodyBytesMax) throw new CallError('body_too_large');
    const headers = headersOf(call.headers ?? {}, target, body?.length, limits);
    const responseBytesMax = Math.min(call.maxResponseBytes, limits.responseBodyBytesMax);
    return { target, message: { method, path: target.path, headers, body, responseBytesMax } };
  }

  async #run(
    { target, message }: { readonly target: CallTarget; readonly message: Message },
    markSent: () => void,
    signal: AbortSignal,
  ): Promise<CallResponse> {
    const connection = await this.#connectInTime(target, signal);
    const { socket, raw, address } = connection;
    const close = (): void => {
      socket.destroy();
      raw.destroy();
    };
    signal.addEventListener('abort', close, { once: true });
    try {
      signal.throwIfAborted();
      markSent();
      const response = await exchange(socket, message, this.#limits);
      const endpoint = { address: address.text, port: target.port, isEncrypted: target.isEncrypted };
      return { kind: 'answered', ...response, endpoint };
    } finally {
      signal.removeEventListener('abort', close);
      close();
    }
  }

  async #connectInTime(target: CallTarget, signal: AbortSignal): Promise<ConnectedSocket> {
    const { connectMs } = this.#limits;
    try {
      return await withDeadline(connectMs, 'a host to connect', inner => this.#connect(target, inner), signal);
    } catch (error) {
      if (signal.aborted || !(error instanceof WaitExpired)) throw error;
      throw new CallError('connect_timed_out');
    }
  }

  async #connect(target: CallTarget, signal: AbortSignal): Promise<ConnectedSocket> {
    const addresses = await this.#addresses(target, signal);
    const limits = { ...EGRESS_LIMITS, connectMs: this.#limits.connectMs };
    const { socket: raw, address } = await dial(addresses, target.port, () => new Socket(), limits, signal);
    try {
      // The local address may show that the remote address is this machine's own.
      this.#check(target, address, raw.localAddress);
      const socket = target.isEncrypted ? await this.#encrypt(raw, target, signal) : raw;
      return { socket, raw, address };
    } catch (error) {
      raw.destroy();
      throw error;
    }
  }

  /** Returns all addresses of the host. Throws if any of them is refused. */
  async #addresses(target: CallTarget, signal: AbortSignal): Promise<readonly Address[]> {
    const limits = { ...EGRESS_LIMITS, resolveMs: this.#limits.connectMs };
    const addresses = await addressesOf(target, this.#options.resolver(), limits, signal);
    for (const address of addresses) this.#check(target, address);
    return addresses;
  }

  #check(target: CallTarget, address: Address, local?: string): void {
    const { rules } = this.#options;
    const verdict = rules.check(address, target.port, local);
    if (!verdict.isAllowed) throw new CallError('address_not_allowed', { rule: verdict.rule });
    if (!target.isEncrypted && !rules.isAllowedByOperator(address, target.port)) throw new CallError('not_https');
  }

  async #encrypt(raw: Socket, { hostname }: CallTarget, signal: AbortSignal): Promise<Socket> {
    const servername = isIP(hostname) === 0 ? { servername: hostname } : {};
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const secureContext = this.#secureContext();
    const socket = connectTls({
      socket: raw,
      host: hostname,
      ALPNProtocols: ['http/1.1'],
      secureContext,
      ...servername,
    });
    socket.once('secureConnect', resolve);
    // This listener is not removed, because an `error` event without a listener would end the process.
    socket.on('error', reject);
    socket.once('close', () => reject(new CallError('tls_failed')));
    try {
      await withTimeout(this.#limits.connectMs, 'a host to finish TLS', () => promise, signal);
      return socket;
    } catch (error) {
      socket.destroy();
      if (signal.aborted || error instanceof WaitExpired || error instanceof CallError) throw error;
      throw new CallError(CERTIFICATE_ERROR_PATTERN.test(errorCodeOf(error)) ? 'certificate_refused' : 'tls_failed');
    }
  }

  /** The context is created once, because creating it parses all authorities. */
  #secureContext(): SecureContext {
    if (this.#context) return this.#context;
    const { authorities } = this.#options;
    const ca = [...getCACertificates('default'), ...(authorities === undefined ? [] : [authorities])];
    this.#context = createSecureContext({ ca });
    return this.#context;
  }
}

/** Matches the error codes with which OpenSSL and Node report certificate errors. */
const CERTIFICATE_ERROR_PATTERN = /CERT|UNABLE_TO_|SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE/;
