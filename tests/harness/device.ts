// The two sides of a device authorization in a test: the program, and the owner of the installation who decides.
import assert from 'node:assert/strict';
import {
  type CollectedToken,
  DEVICE_GRANT_TYPE,
  type DecidedDevice,
  type DeviceRequest,
  type StartedDevice,
} from '../../contract/device.ts';
import type { OAuthError } from '../../contract/oauth.ts';
import type { HttpResult } from './http.ts';
import { Person } from './person.ts';
import type { TestServer } from './server.ts';

export const AUTHORIZATIONS = '/v1/device/authorizations';
export const APPROVALS = '/v1/device/approvals';
export const DEVICE_TOKENS = '/v1/device/tokens';
export const CLIENT_ID = 'my-agent';

const EMAIL = 'ada@example.com';

export class DeviceFixture {
  readonly #server: TestServer;
  readonly owner: Person;

  private constructor(server: TestServer, owner: Person) {
    this.#server = server;
    this.owner = owner;
  }

  static async open(server: TestServer): Promise<DeviceFixture> {
    return new DeviceFixture(server, await Person.setUpOwner(server, EMAIL));
  }

  /** Sends a request without a credential. */
  sendWithoutCredential<Body = OAuthError>(path: string, body: unknown, headers = {}): Promise<HttpResult<Body>> {
    return this.#server.api<Body>('POST', path, { key: null, headers, body });
  }

  async start(fields: object = {}): Promise<StartedDevice> {
    const { status, body, text } = await this.sendWithoutCredential<StartedDevice>(AUTHORIZATIONS, {
      client_id: CLIENT_ID,
      ...fields,
    });
    assert.equal(status, 201, text);
    return body;
  }

  collect<Body = OAuthError>({ device_code }: StartedDevice, fields: object = {}): Promise<HttpResult<Body>> {
    return this.sendWithoutCredential(DEVICE_TOKENS, {
      grant_type: DEVICE_GRANT_TYPE,
      device_code,
      client_id: CLIENT_ID,
      ...fields,
    });
  }

  async collectToken(startedDevice: StartedDevice, fields: object = {}): Promise<CollectedToken> {
    const { status, body, text } = await this.collect<CollectedToken>(startedDevice, fields);
    assert.equal(status, 200, text);
    return body;
  }

  /** Signs in the owner again, because the clock of the server may have been advanced since the last sign-in. */
  async signInOwner(): Promise<Person> {
    const { status, text } = await this.owner.signIn(EMAIL);
    assert.equal(status, 200, text);
    return this.owner;
  }

  read(person: Person, userCode: string): Promise<HttpResult<DeviceRequest>> {
    return person.get(`${AUTHORIZATIONS}?user_code=${userCode}`);
  }

  decide<Body = DecidedDevice>(person: Person, userCode: string, fields: object): Promise<HttpResult<Body>> {
    return person.post<Body>(APPROVALS, { userCode, ...fields });
  }

  /** The decision that grants all requested scopes in the first application. */
  get approval(): { decision: 'approve'; applicationIds: string[] } {
    return { decision: 'approve', applicationIds: [this.#server.applicationId] };
  }

  /** Reads and approves the request as the owner. */
  async approve({ user_code: code }: Pick<StartedDevice, 'user_code'>, fields: object = {}): Promise<void> {
    const owner = await this.signInOwner();
    const readResponse = await this.read(owner, code);
    assert.equal(readResponse.status, 200, readResponse.text);
    const decideResponse = await this.decide(owner, code, { ...this.approval, ...fields });
    assert.deepEqual([decideResponse.status, decideResponse.body.status], [200, 'approved'], decideResponse.text);
  }
}
