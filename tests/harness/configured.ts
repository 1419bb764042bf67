// Operations and credentials that a test configures as the owner of the first application.
import assert from 'node:assert/strict';
import type { ErrorBody } from '../../contract/common.ts';
import type { ConfiguredOperation } from '../../contract/configured-operations.ts';
import type { StoredCredential } from '../../contract/stored-credentials.ts';
import type { HttpResult } from './http.ts';
import { ownerToken } from './limits.ts';
import type { TestServer } from './server.ts';
import type { Upstream } from './upstream.ts';

type ApiResult<Body> = HttpResult<Body & ErrorBody>;

export class Owner {
  readonly #server: TestServer;
  readonly #token: string;

  private constructor(server: TestServer, token: string) {
    this.#server = server;
    this.#token = token;
  }

  static async of(server: TestServer): Promise<Owner> {
    return new Owner(server, await ownerToken(server));
  }

  send<Body>(
    method: string,
    path: string,
    options: { body?: unknown; ifMatch?: string } = {},
  ): Promise<ApiResult<Body>> {
    const { body, ifMatch } = options;
    return this.#server.api(method, `/v1/applications/${this.#server.applicationId}/${path}`, {
      key: this.#token,
      headers: ifMatch === undefined ? {} : { 'if-match': ifMatch },
      ...(body === undefined ? {} : { body }),
    });
  }

  configure(id: string, body: unknown, ifMatch?: string): Promise<ApiResult<ConfiguredOperation>> {
    return this.send('PUT', `operations/${id}`, { body, ...(ifMatch === undefined ? {} : { ifMatch }) });
  }

  /** Configures an operation, which may already exist, and publishes the operation. */
  async publish(id: string, body: object): Promise<ConfiguredOperation> {
    const existing = await this.send('GET', `operations/${id}`);
    const configured = await this.configure(id, body, existing.status === 200 ? '*' : undefined);
    assert.ok(configured.status === 200 || configured.status === 201, configured.text);
    const published = await this.send<ConfiguredOperation>('POST', `operations/${id}/publish`);
    assert.equal(published.status, 200, published.text);
    return published.body;
  }

  writeCredential(id: string, body: unknown, ifMatch?: string): Promise<ApiResult<StoredCredential>> {
    return this.send('PUT', `credentials/${id}`, { body, ...(ifMatch === undefined ? {} : { ifMatch }) });
  }
}

/** An operation that cancels an order at the upstream. */
export const cancelOrderOperation = (
  { url }: Pick<Upstream, 'url'>,
  overrides: { binding?: object; [field: string]: unknown } = {},
) => ({
  title: 'Cancel an order',
  description: 'Cancels an order that has not shipped.',
  kind: 'http',
  effect: 'write',
  inputSchema: {
    type: 'object',
    required: ['orderId'],
    properties: { orderId: { type: 'string', maxLength: 200 }, reason: { type: 'string' } },
    additionalProperties: false,
  },
  outputSchema: { type: 'object', properties: { state: { type: 'string' } } },
  ...overrides,
  binding: { method: 'POST', url: `${url}/orders/{orderId}/cancel`, body: { from: '/' }, ...overrides.binding },
});
