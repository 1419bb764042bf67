// Helpers for tests of Actions: an operation that needs approval, and the requests that agents and people send about an
// Action.
import assert from 'node:assert/strict';
import type { Action, ActionChallenge, ApplicationAction } from '../../contract/actions.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { Invocation } from '../../contract/invocations.ts';
import type { PasskeyChallenge } from '../../contract/sign-in.ts';
import { Authenticator, type Forgery } from './authenticator.ts';
import type { HttpResult } from './http.ts';
import { agentPath } from './operations.ts';
import type { Person } from './person.ts';
import type { TestServer } from './server.ts';

type ApiResult<Body> = HttpResult<Body & ErrorBody>;

/** The scopes of an agent key that prepares and executes Actions. */
export const ACTION_SCOPES = [
  ...['operations:discover', 'operations:invoke', 'invocations:read'],
  ...['actions:prepare', 'actions:execute'],
];

let preparedCount = 0;

/** Sends requests about Actions with one agent key. */
export class ActionAgent {
  readonly #server: TestServer;
  readonly #key: string;

  constructor(server: TestServer, key: string) {
    this.#server = server;
    this.#key = key;
  }

  prepare(operationId: string, body: object, idempotencyKey = `action ${++preparedCount}`): Promise<ApiResult<Action>> {
    return this.#send('POST', `operations/${operationId}/prepare`, body, { 'idempotency-key': idempotencyKey });
  }

  async prepareSuccessfully(operationId: string, body: object): Promise<Action> {
    const result = await this.prepare(operationId, body);
    assert.equal(result.status, 201, result.text);
    return result.body;
  }

  read(jobId: string, query = ''): Promise<ApiResult<Action>> {
    return this.#send('GET', `actions/${jobId}${query}`);
  }

  execute({ jobId, digest }: Pick<Action, 'jobId' | 'digest'>): Promise<ApiResult<Invocation>> {
    return this.#send('POST', `actions/${jobId}`, { digest });
  }

  cancel(jobId: string): Promise<ApiResult<Action>> {
    return this.#send('POST', `actions/${jobId}/cancel`);
  }

  readInvocation(id: string): Promise<ApiResult<Invocation>> {
    return this.#send('GET', `invocations/${id}?wait=20`);
  }

  #send<Body>(
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<ApiResult<Body>> {
    return this.#server.api(method, agentPath(this.#server, path), {
      ...{ key: this.#key, headers },
      ...(body === undefined ? {} : { body }),
    });
  }
}

export const actionsPath = (server: TestServer, path = ''): string =>
  `/v1/applications/${server.applicationId}/actions${path}`;

/** The Origin header that a page at localhost sends. Passkeys need it, because they are bound to a host name. */
const localhostOriginHeader = (server: TestServer) => ({ origin: server.url.replace('127.0.0.1', 'localhost') });

export const decide = (
  server: TestServer,
  person: Person,
  { jobId, digest }: Pick<Action, 'jobId' | 'digest'>,
  body: object = {},
): Promise<ApiResult<ApplicationAction>> =>
  person.send(
    'POST',
    actionsPath(server, `/${jobId}/decision`),
    { digest, decision: 'approve', ...body },
    localhostOriginHeader(server),
  ) as Promise<ApiResult<ApplicationAction>>; // The type has the fields of an Action and those of an error.

/** Adds a passkey to the account of a person who has stepped up. */
export async function addPasskey(server: TestServer, person: Person): Promise<Authenticator> {
  const passkey = new Authenticator(localhostOriginHeader(server).origin);
  const originHeader = localhostOriginHeader(server);
  const { status, body, text } = await person.send<PasskeyChallenge>(
    'POST',
    '/v1/account/passkeys/options',
    {},
    originHeader,
  );
  assert.equal(status, 200, text);
  const response = passkey.create(body.publicKey);
  const addResponse = await person.send(
    'POST',
    '/v1/account/passkeys',
    { ticket: body.ticket, name: 'key', response },
    originHeader,
  );
  assert.equal(addResponse.status, 201, addResponse.text);
  return passkey;
}

/** Signs the digest of the Action, as the page does. */
export async function signAction(
  server: TestServer,
  person: Person,
  passkey: Authenticator,
  { jobId }: Pick<Action, 'jobId'>,
  forgery: Forgery = {},
): Promise<object> {
  const path = actionsPath(server, `/${jobId}/challenge`);
  const { status, body, text } = await person.send<ActionChallenge>('POST', path, {}, localhostOriginHeader(server));
  assert.equal(status, 200, text);
  return passkey.get(body.publicKey ?? assert.fail('the challenge has no publicKey'), forgery);
}
