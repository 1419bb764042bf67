// Operations and credentials that a test configures as the owner of the first application.
import assert from 'node:assert/strict';
import type { ErrorBody } from '../../contract/common.ts';
import type { ConfiguredOperation } from '../../contract/configured-operations.ts';
import type { StoredCredential } from '../../contract/stored-credentials.ts';
import type { HttpResult } from './http.ts';
import { createOwnerToken } from './limits.ts';
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

  static async open(server: TestServer): Promise<Owner> {
    return new Owner(server, await createOwnerToken(server));
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

  /** Configures and publishes an operation, which may already exist. */
  async publish(id: string, body: object): Promise<ConfiguredOperation> {
    const readResponse = await this.send('GET', `operations/${id}`);
    const configureResponse = await this.configure(id, body, readResponse.status === 200 ? '*' : undefined);
    assert.ok(configureResponse.status === 200 || configureResponse.status === 201, configureResponse.text);
    const publishResponse = await this.send<ConfiguredOperation>('POST', `operations/${id}/publish`);
    assert.equal(publishResponse.status, 200, publishResponse.text);
    return publishResponse.body;
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
