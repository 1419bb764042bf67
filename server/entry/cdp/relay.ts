// Relays messages between a client's socket and its channel in the browser, and handles all ways in which the
// connection can end. policy.ts decides which messages may be sent, and upgrade.ts decides which clients may connect.
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Lease } from '../../domain/handoffs/lease.ts';
import type { BytesWatch, WaitingBytes } from '../../domain/limits/waiting-bytes.ts';
import type { BrowserClient, ReadLongMessage } from '../../domain/sessions/browser-host.ts';
import {
  type AttachedClient,
  CLIENT_CLOSES,
  type ClientClose,
  type ClientKind,
  type LiveSession,
} from '../../domain/sessions/live.ts';
import { reason } from '../../kit/fault.ts';
import { guardListener } from '../../kit/guard.ts';
import type { JsonObject } from '../../kit/json.ts';
import { loopWatch, type Work } from '../../kit/loop-watch.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { LevelKind } from '../../kit/totals.ts';
import { devtoolsPolicy } from './devtools-policy.ts';
import { frameHeader, textFrames } from './frame.ts';
import { clientPolicy } from './policy.ts';

/**
 * A client with more unread bytes than this is disconnected. The limit is checked before each write, so a larger single
 * message is still sent.
 */
const UNREAD_BYTES_MAX = 64 * 1024 ** 2;
const COPY_BYTES_MAX = 64 * 1024;
/**
 * The limit up to which messages are copied for a client with unread bytes. It is higher than `COPY_BYTES_MAX`, because
 * slices of a read buffer would keep the whole buffer in memory.
 */
const UNREAD_COPY_BYTES_MAX = 1024 ** 2;
/** The bytes of an incomplete incoming message are counted only if there are more than this. */
const NOTED_ARRIVING_BYTES_MIN = 1024 ** 2;
const PING_INTERVAL_MS = 20_000;
/** A client that sends no byte for this long is considered gone. It gets at least two pings in this time. */
const SILENCE_TIMEOUT_MS = 55_000;
/**
 * The minimum time between two checks for silence. The sum of this time and `SILENCE_TIMEOUT_MS` is less than a minute.
 */
const CHECK_INTERVAL_MS_MIN = 1_000;
/**
 * The slowest rate at which a client may read. A ping arrives after everything that was written before it, so a client
 * with unread bytes gets the time that it needs to read them at this rate.
 */
const READ_BYTES_PER_MS_MIN = 8;
const SLOW_READ_MS_MAX = 600_000;
/** The number of decimal digits of Number.MAX_SAFE_INTEGER. */
const SAFE_INTEGER_DIGITS = 16;
const IDLE_TIMEOUT_MS = 600_000;
const CLOSE_TIMEOUT_MS = 2_000;
/** The code 1013 means: try again later. */
const TOO_SLOW_CLOSE: ClientClose = { code: 1013, reason: 'the client reads too slowly' };
const TOO_MANY_UNREAD_CLOSES: Readonly<Record<LevelKind, ClientClose>> = {
  session: { code: 1013, reason: 'the client reads too slowly: too many bytes are waiting in this session' },
  application: { code: 1013, reason: 'the client reads too slowly: too many bytes are waiting in this application' },
  process: { code: 1013, reason: 'the client reads too slowly: too many bytes are waiting in this server' },
};
const FAILED_CLOSE: ClientClose = { code: 1011, reason: 'a message of this client could not be handled' };
const PAGE_GONE_CLOSE: ClientClose = { code: 1000, reason: 'the page was closed' };

export interface RelayParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly live: LiveSession;
  readonly socket: WebSocket;
  /** The TCP connection of the WebSocket. */
  readonly connection: Duplex;
  readonly kind: ClientKind;
  readonly lease: Lease | undefined;
  readonly requestHandoff?: (params: JsonObject) => Promise<JsonObject>;
  /**
   * For DevTools, the only page that it can access. The idle limit does not apply to DevTools, because its user may
   * look at the page without causing any commands.
   */
  readonly page?: string;
  readonly waitingBytes: WaitingBytes;
  /**
   * Returns the maximum length of a response to this method, in bytes. Absent for a client without such limits. See
   * `ClientListener` in engines/browser.
   */
  readonly responseBytesMax?: (method: string) => number;
  /** Reads the envelope of a long message in a worker thread. The job is queued under the id of the session. */
  readonly readLongMessage: ReadLongMessage;
  /** Ends the session. Called after Browser.close on a session without keepAlive. */
  readonly endSession: () => Promise<unknown>;
}

export class Relay implements AttachedClient {
  readonly kind: ClientKind;
  readonly #parts: RelayParts;
  readonly #earlyMessages: Buffer[] = [];
  readonly #whenGone = Promise.withResolvers<void>();
  readonly #closeController = new AbortController();
  /** The reason, if the server closed the connection. */
  #closeReason: string | undefined;
  #client: BrowserClient | undefined;
  #unsentMessages: Buffer[] = [];
  #unsentBytes = 0;
  #earlyBytes = 0;
  /** How many bytes of the incoming message have been received so far. */
  #arrivingBytes = 0;
  readonly #bytesWatch: BytesWatch;
  #lastByteMs: number;
  #writtenBytes = 0;
  /** The number of bytes written before the last ping that the client answered. */
  #acknowledgedBytes = 0;
  #lastCommandMs: number;
  readonly #work: Work;

  constructor(parts: RelayParts) {
    this.#parts = parts;
    this.kind = parts.kind;
    this.#work = { what: 'messages of a client', sessionId: parts.live.id };
    this.#lastByteMs = parts.clock.monotonicMs();
    this.#lastCommandMs = this.#lastByteMs;
    const owner = { application: parts.live.applicationId, session: parts.live.id };
    this.#bytesWatch = parts.waitingBytes.watch(owner, {
      bytes: () => this.#waitingBytes(),
      close: bound => {
        parts.log.warn('cdp.too_much_waits', { sessionId: parts.live.id, bound });
        void this.disconnect(TOO_MANY_UNREAD_CLOSES[bound]);
      },
    });
    this.#listen();
  }

  /** Opens the channel, and forwards the messages that arrived in the meantime, in order. */
  async open(): Promise<void> {
    const { live, socket, page, readLongMessage, responseBytesMax } = this.#parts;
    socket.pause();
    const listener = {
      message: (message: Buffer) => this.#send(message),
      batchEnd: () => this.#flush(),
      setPaused: (on: boolean) => (on ? socket.pause() : socket.resume()),
      failed: (error: unknown) => this.#onFailed(error),
      onPageGone: () => void this.disconnect(PAGE_GONE_CLOSE),
      readLongMessage: (message: Buffer) => readLongMessage(message, live.id),
      ...(responseBytesMax ? { responseBytesMax } : {}),
    };
    const policyParts = {
      browser: live.browser,
      keepAlive: live.keepAlive,
      onCloseRequest: () => this.#onCloseRequest(),
      lease: this.#parts.lease,
      ...(this.#parts.requestHandoff ? { requestHandoff: this.#parts.requestHandoff } : {}),
    };
    const client =
      page === undefined
        ? await live.browser.openClient(clientPolicy(policyParts), listener, live.tap)
        : await live.browser.openPageClient(page, devtoolsPolicy({ ...policyParts, page }), listener);
    if (!client) return this.disconnect(PAGE_GONE_CLOSE);
    if (socket.readyState !== socket.OPEN) return client.close();
    this.#client = client;
    this.#followLease(this.#parts.lease);
    for (const message of this.#earlyMessages.splice(0)) client.receive(message);
    this.#earlyBytes = 0;
    socket.resume();
  }

  /** Notifies the client of hand-offs. After a masked hand-off, sends the events that were withheld from the client. */
  #followLease(lease: Lease | undefined): void {
    if (!lease) return;
    const subscriptions = [
      lease.onNotice(({ method, params }) => this.#client?.announce(method, params)),
      lease.onChange(() => {
        if (!lease.control?.isMasked) this.#client?.sendWithheld();
      }),
    ];
    this.#parts.socket.once('close', () => {
      for (const subscription of subscriptions) subscription.close();
    });
  }

  async disconnect(close: ClientClose): Promise<void> {
    const { socket, log, live } = this.#parts;
    this.#closeReason ??= close.reason;
    this.#sendReason(close);
    socket.close(close.code, close.reason);
    const timeout = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
    await this.#whenGone.promise;
    clearTimeout(timeout);
    log.debug('cdp.closed_by_us', { sessionId: live.id, code: close.code });
  }

  /** Also sends the reason as a CDP event, as Chromium does. The DevTools front end shows it. */
  #sendReason({ reason }: ClientClose): void {
    if (this.#parts.page === undefined) return;
    this.#send(Buffer.from(JSON.stringify({ method: 'Inspector.detached', params: { reason } })));
    this.#flush();
  }

  #listen(): void {
    const { socket, connection, live, log } = this.#parts;
    const receive = guardListener(
      error => this.#onFailed(error),
      (data: unknown, binary: boolean) => this.#receive(data, binary),
    );
    socket.on('message', receive);
    socket.on('pong', (data: Buffer) => {
      const bytes = Number(data.toString('latin1', 0, SAFE_INTEGER_DIGITS));
      if (bytes >= this.#acknowledgedBytes && bytes <= this.#writtenBytes) this.#acknowledgedBytes = bytes;
    });
    socket.on('error', error => log.debug('cdp.socket_error', { sessionId: live.id, reason: reason(error) }));
    socket.once('close', () => void this.#onClose());
    connection.on('drain', () => this.#bytesWatch.note());
    // Runs before the listener of `ws`, which may emit the complete message in the same turn.
    connection.prependListener('data', (bytes: Buffer) => {
      this.#lastByteMs = this.#parts.clock.monotonicMs();
      this.#arrivingBytes += bytes.length;
      if (this.#arrivingBytes > NOTED_ARRIVING_BYTES_MIN) this.#bytesWatch.note();
    });
    void this.#watch();
  }

  /** Called when a message could not be handled because of a bug. Only this client is closed. */
  #onFailed(error: unknown): void {
    const { log, live } = this.#parts;
    if (this.#closeReason !== undefined) return;
    log.error('cdp.message_failed', { sessionId: live.id, error });
    void this.disconnect(FAILED_CLOSE);
  }

  #receive(data: unknown, binary: boolean): void {
    const { socket } = this.#parts;
    if (socket.readyState !== socket.OPEN) return; // Messages still arrive while the socket is closing.
    const message = Buffer.isBuffer(data) ? data : undefined;
    if (!message || binary) return socket.close(1003, 'messages must be text');
    this.#arrivingBytes = 0;
    this.#lastCommandMs = this.#parts.clock.monotonicMs();
    if (!this.#client) {
      this.#earlyMessages.push(message);
      this.#earlyBytes += message.length;
      return;
    }
    loopWatch.enter(this.#work);
    this.#client.receive(message);
    loopWatch.leave();
    if (this.#client.isBackpressured(() => socket.resume())) socket.pause();
  }

  /**
   * All frames of one turn are written directly to the connection, in one write. `ws` handles incoming frames and
   * control frames.
   */
  #send(message: Buffer): void {
    this.#unsentMessages.push(message);
    this.#unsentBytes += message.length;
  }

  #flush(): void {
    if (this.#unsentMessages.length > 0) this.#write();
    this.#bytesWatch.note();
  }

  #write(): void {
    const { socket, connection } = this.#parts;
    const pendingMessages = this.#unsentMessages;
    this.#unsentMessages = [];
    const bytes = this.#unsentBytes;
    this.#unsentBytes = 0;
    this.#writtenBytes += bytes;
    if (socket.readyState !== socket.OPEN) return;
    if (connection.writableLength > UNREAD_BYTES_MAX) return void this.disconnect(TOO_SLOW_CLOSE);
    const hasUnreadBytes = connection.writableLength > 0;
    if (bytes <= (hasUnreadBytes ? UNREAD_COPY_BYTES_MAX : COPY_BYTES_MAX)) {
      connection.write(textFrames(pendingMessages));
      return;
    }
    connection.cork();
    for (const message of pendingMessages) {
      connection.write(frameHeader(message.length));
      connection.write(message);
    }
    connection.uncork();
  }

  #waitingBytes(): number {
    const { connection } = this.#parts;
    return connection.writableLength + this.#arrivingBytes + this.#earlyBytes + (this.#client?.bufferedBytes ?? 0);
  }

  /** Deferred, so that Browser.close is answered first. */
  #onCloseRequest(): void {
    setImmediate(() => {
      if (this.#parts.live.keepAlive) void this.disconnect(CLIENT_CLOSES.clientClosed);
      else void this.#parts.endSession();
    });
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closeController;
    while (!signal.aborted) {
      const remainingSilenceMs = this.#silenceMs() - (this.#parts.clock.monotonicMs() - this.#lastByteMs);
      const waitMs = Math.min(PING_INTERVAL_MS, Math.max(CHECK_INTERVAL_MS_MIN, remainingSilenceMs));
      await this.#parts.clock.sleep(waitMs, signal).catch(() => {});
      if (!signal.aborted) this.#checkConnection();
    }
  }

  /** How long, in milliseconds, a client may send nothing before it is considered gone. */
  #silenceMs(): number {
    return (
      SILENCE_TIMEOUT_MS +
      Math.min(SLOW_READ_MS_MAX, (this.#writtenBytes - this.#acknowledgedBytes) / READ_BYTES_PER_MS_MIN)
    );
  }

  #checkConnection(): void {
    const { socket, clock } = this.#parts;
    const now = clock.monotonicMs();
    // While the socket is paused, nothing can be received from the client.
    if (socket.isPaused) this.#lastByteMs = now;
    if (now - this.#lastByteMs >= this.#silenceMs()) {
      this.#closeReason = `the client sent nothing for ${Math.round((now - this.#lastByteMs) / 1000)} seconds`;
      return socket.terminate();
    }
    // The idle time does not count while a requested hand-off is open or a person has control, because the agent is
    // waiting.
    if (this.#parts.lease?.wasRequested || this.#parts.lease?.control) this.#lastCommandMs = now;
    if (this.#parts.page === undefined && now - this.#lastCommandMs > IDLE_TIMEOUT_MS)
      return void this.disconnect(CLIENT_CLOSES.idle);
    socket.ping(`${this.#writtenBytes}`);
  }

  async #onClose(): Promise<void> {
    const { live, log } = this.#parts;
    this.#closeController.abort(new Error('the socket is closed'));
    this.#whenGone.resolve();
    this.#bytesWatch.close();
    live.detach(this, this.#closeReason);
    if (live.isOpen)
      await this.#client?.close().catch(error => {
        // If the session has ended in the meantime, there is nothing to detach from.
        if (live.isOpen) log.warn('cdp.detach_failed', { sessionId: live.id, reason: reason(error) });
      });
    log.info('cdp.disconnected', { sessionId: live.id });
  }
}
