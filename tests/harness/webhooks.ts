// A webhook receiver on loopback, and functions that create webhooks and read their deliveries.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { after } from 'node:test';
import type { Webhook, WebhookDelivery, WebhookDeliveryPage } from '../../contract/webhooks.ts';
import { claimFreePort } from './free-port.ts';
import type { TestServer } from './server.ts';
import { eventually } from './until.ts';

export interface ReceivedWebhook {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The parsed body. */
  readonly message: { readonly type: string; readonly timestamp: string; readonly data: Record<string, unknown> };
}

export type RequestHandler = (response: ServerResponse, receivedWebhook: ReceivedWebhook) => void;

export class Receiver {
  readonly port: number;
  readonly #receivedWebhooks: ReceivedWebhook[] = [];
  readonly #handlers = new Map<string, RequestHandler>();
  readonly #server: Server;

  private constructor(port: number) {
    this.port = port;
    this.#server = createServer(async (request, response) => {
      const body = await text(request).catch(() => undefined);
      if (body === undefined) return void response.destroy(); // the sender was killed during its request
      const path = request.url ?? '';
      const receivedWebhook = { path, headers: request.headers, body, message: JSON.parse(body) };
      this.#receivedWebhooks.push(receivedWebhook);
      const handler = this.#handlers.get(path) ?? (given => void given.writeHead(204).end());
      handler(response, receivedWebhook);
    });
  }

  /** Opens a receiver that runs until the end of the test file. */
  static async open(): Promise<Receiver> {
    const receiver = new Receiver(await claimFreePort());
    await receiver.listen();
    after(() => receiver.stop());
    return receiver;
  }

  /** Settings with which the server can reach the receiver. */
  get settings(): Record<string, string> {
    return {
      BERTH_EGRESS_ALLOW: `127.0.0.1/32:${this.port}`,
      BERTH_EGRESS_HOSTS: 'hooks.test=127.0.0.1',
    };
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  /** Sets the response to requests for this path. The default is 204. */
  respondTo(path: string, handler: RequestHandler): void {
    this.#handlers.set(path, handler);
  }

  receivedAt(path: string): readonly ReceivedWebhook[] {
    return this.#receivedWebhooks.filter(received => received.path === path);
  }

  /** Waits for this many requests to the path, and returns all of them. */
  async waitForCount(path: string, count: number): Promise<readonly ReceivedWebhook[]> {
    const isEnough = (all: readonly ReceivedWebhook[]): boolean => all.length >= count;
    return eventually(`${count} messages at ${path}`, () => this.receivedAt(path), isEnough);
  }

  async listen(): Promise<void> {
    this.#server.listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

export const webhooksPath = (server: TestServer, rest = ''): string =>
  `/v1/applications/${server.applicationId}/webhooks${rest}`;

export async function createWebhook(server: TestServer, key: string, body: object): Promise<Webhook> {
  const response = await server.api<Webhook>('POST', webhooksPath(server), { key, body: { name: 'test', ...body } });
  assert.equal(response.status, 201, response.text);
  return response.body;
}

export async function listDeliveries(server: TestServer, key: string, id: string): Promise<readonly WebhookDelivery[]> {
  const path = webhooksPath(server, `/${id}/deliveries?limit=100`);
  const response = await server.api<WebhookDeliveryPage>('GET', path, { key });
  assert.equal(response.status, 200, response.text);
  return response.body.data;
}

export async function sendTestEvent(server: TestServer, key: string, id: string): Promise<WebhookDelivery> {
  const response = await server.api<WebhookDelivery>('POST', webhooksPath(server, `/${id}/test`), { key });
  assert.equal(response.status, 201, response.text);
  return response.body;
}

/** Waits until the delivery satisfies the condition, and returns it. */
export const waitForDelivery = (
  server: TestServer,
  key: string,
  { id, webhookId }: Pick<WebhookDelivery, 'id' | 'webhookId'>,
  satisfies: (delivery: WebhookDelivery) => boolean,
): Promise<WebhookDelivery> =>
  eventually(
    'the delivery',
    async () => {
      const path = webhooksPath(server, `/${webhookId}/deliveries/${id}`);
      return (await server.api<WebhookDelivery>('GET', path, { key })).body;
    },
    satisfies,
  );
