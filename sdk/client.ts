// The client: openapi-fetch with the types of our OpenAPI document. Sends the credential that a path requires, and
// throws a BerthError for every failure.
import createClient, { type Client, type Middleware } from 'openapi-fetch';
import { BerthError, readError, unreachableError } from './berth-error.ts';
import type { paths } from './generated/api.ts';

export type Berth = Client<paths>;

export interface BerthOptions {
  /** The address of the service. Default: `BERTH_URL`, or http://127.0.0.1:8080. */
  readonly url?: string | undefined;
  /**
   * An agent key, for `/v1/browsers` and `/v1/agent`, and for hand-offs if there is no `token`. Default: `BERTH_KEY`.
   */
  readonly key?: string | undefined;
  /**
   * A personal access token, for `/v1/applications`, `/v1/account`, `/v1/topups` and `/v1/operator`. Default:
   * `BERTH_TOKEN`.
   */
  readonly token?: string | undefined;
}

const URL_DEFAULT = 'http://127.0.0.1:8080';
const FAILURE_STATUS_MIN = 400;

/** Agents request hand-offs too, so the agent key is sent if there is no access token. */
const HANDOFFS_PATH = '/v1/applications/{appId}/handoffs';

/** Path prefixes, each with the kind of credential that it requires. All other paths require none. */
const CREDENTIALS = [
  { prefix: '/v1/browsers/', kind: 'key', name: 'an agent key', variable: 'BERTH_KEY' },
  { prefix: '/v1/agent/', kind: 'key', name: 'an agent key', variable: 'BERTH_KEY' },
  { prefix: '/v1/applications', kind: 'token', name: 'a personal access token', variable: 'BERTH_TOKEN' },
  { prefix: '/v1/account', kind: 'token', name: 'a personal access token', variable: 'BERTH_TOKEN' },
  { prefix: '/v1/topups/', kind: 'token', name: 'a personal access token', variable: 'BERTH_TOKEN' },
  { prefix: '/v1/operator/', kind: 'token', name: 'a personal access token', variable: 'BERTH_TOKEN' },
] as const;

export function berthClient(options: BerthOptions = {}): Berth {
  const { BERTH_URL, BERTH_KEY, BERTH_TOKEN } = process.env;
  const client = createClient<paths>({ baseUrl: options.url ?? (BERTH_URL || URL_DEFAULT) });
  client.use(
    authorizationMiddleware({ key: options.key ?? BERTH_KEY, token: options.token ?? BERTH_TOKEN }),
    failureMiddleware,
  );
  return client;
}

const authorizationMiddleware = (credentials: Readonly<Record<'key' | 'token', string | undefined>>): Middleware => ({
  onRequest({ request, schemaPath }) {
    const credentialKind = CREDENTIALS.find(({ prefix }) => schemaPath.startsWith(prefix));
    if (!credentialKind || request.headers.has('authorization')) return undefined;
    const fallbackCredential = schemaPath.startsWith(HANDOFFS_PATH) ? credentials.key : undefined;
    const credential = credentials[credentialKind.kind] || fallbackCredential;
    if (!credential)
      throw new BerthError({
        code: 'no_credential',
        message: `${schemaPath} requires ${credentialKind.name}, but none is set.`,
        advice: `Set ${credentialKind.variable}, or pass \`${credentialKind.kind}\` to berthClient.`,
        details: { credential: credentialKind.kind },
      });
    request.headers.set('authorization', `Bearer ${credential}`);
    return request;
  },
});

const failureMiddleware: Middleware = {
  async onResponse({ response }) {
    if (response.status >= FAILURE_STATUS_MIN) throw await readError(response);
  },
  onError: ({ error, request }) => (isAborted(error) ? undefined : unreachableError(request.url, error)),
};

/** Whether the caller's own signal aborted the request. The error is then thrown unchanged. */
const isAborted = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError');
