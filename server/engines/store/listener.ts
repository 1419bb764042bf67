// A connection that only listens for notifications. It is reopened when it breaks, and subscribers are then informed
// that notifications may have been missed.
import { setTimeout as timer } from 'node:timers/promises';
import pg from 'pg';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import { connectionConfig, type Target, unreachableFault } from './database.ts';
import type { Channel } from './store.ts';

/** How often a query checks the connection, which may break without an error (a firewall, a lost host). */
const PROBE_INTERVAL_MS = 30_000;
const PROBE_TIMEOUT_MS = 5_000;
const BACKOFF_MIN_MS = 50;
const BACKOFF_MAX_MS = 5_000;

/** The connection listens to all channels. Notifications without a subscriber are dropped. */
const CHANNELS: Readonly<Record<Channel, true>> = {
  credential_revoked: true,
  session_event: true,
  device_changed: true,
  action_changed: true,
  inbox_changed: true,
  hosts_changed: true,
  line_moved: true,
};

interface Subscriber {
  readonly channel: Channel;
  readonly receive: (payload: string) => void;
  readonly onGap: () => void;
}

export class Listener implements Closeable {
  readonly #target: Target;
  readonly #log: Log;
  readonly #subscribers = new Set<Subscriber>();
  readonly #closeController = new AbortController();
  #firstConnection: Promise<void> | undefined;
  #client: pg.Client | undefined;

  constructor(target: Target, log: Log) {
    this.#target = target;
    this.#log = log;
  }

  /**
   * Subscribes to a channel. Resolves once notifications are being received. The first subscriber opens the connection.
   * `onGap` is called after notifications may have been missed.
   */
  async listen(
    channel: Channel,
    onNotification: Subscriber['receive'],
    onGap: Subscriber['onGap'],
  ): Promise<Closeable> {
    this.#firstConnection ??= this.#begin();
    await this.#firstConnection;
    const subscriber: Subscriber = { channel, receive: onNotification, onGap };
    this.#subscribers.add(subscriber);
    return { close: () => void this.#subscribers.delete(subscriber) };
  }

  async close(): Promise<void> {
    this.#closeController.abort();
    await this.#client?.end().catch(() => {});
  }

  async #begin(): Promise<void> {
    try {
      void this.#keepConnected(await this.#connect());
    } catch (error) {
      this.#firstConnection = undefined;
      throw unreachableFault(error);
    }
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({ ...connectionConfig(this.#target), query_timeout: PROBE_TIMEOUT_MS });
    client.on('error', error => this.#log.debug('store.listener_lost', { reason: reason(error) }));
    client.on('notification', notice => this.#notify(notice.channel, notice.payload ?? ''));
    try {
      await client.connect();
      for (const channel of Object.keys(CHANNELS)) await client.query(`listen ${channel}`);
      this.#closeController.signal.throwIfAborted();
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
    this.#client = client;
    return client;
  }

  #notify(channel: string, payload: string): void {
    for (const subscriber of this.#subscribers) if (subscriber.channel === channel) subscriber.receive(payload);
  }

  async #keepConnected(firstClient: pg.Client): Promise<void> {
    for (let client: pg.Client | undefined = firstClient; client; client = await this.#reconnect()) {
      await this.#waitUntilLost(client);
      if (this.#closeController.signal.aborted) return;
    }
  }

  async #waitUntilLost(client: pg.Client): Promise<void> {
    const connectionLoss = Promise.withResolvers<void>();
    client.once('end', () => connectionLoss.resolve());
    const probeTimer = setInterval(
      () => client.query('select 1').catch(() => connectionLoss.resolve()),
      PROBE_INTERVAL_MS,
    );
    probeTimer.unref();
    await connectionLoss.promise;
    clearInterval(probeTimer);
    // Not awaited, because the database might never respond.
    void client.end().catch(() => {});
  }

  async #reconnect(): Promise<pg.Client | undefined> {
    const signal = this.#closeController.signal;
    for (let waitMs = BACKOFF_MIN_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, BACKOFF_MAX_MS)) {
      await timer(waitMs, undefined, { signal }).catch(() => {});
      const client = signal.aborted ? undefined : await this.#connect().catch(() => undefined);
      if (!client) continue;
      for (const subscriber of this.#subscribers) subscriber.onGap();
      return client;
    }
    return undefined;
  }
}
