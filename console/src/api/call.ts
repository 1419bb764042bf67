// Calls the API by operation name, with the types of the contract. The operation determines the credential. Errors are
// thrown as ApiError, with the API's message.
import type { Static, TSchema } from 'typebox';
import type { OPERATIONS, OperationId, OperationInput } from '../../../contract/operations.ts';
import { ApiError } from './api-error.ts';
import { accountHeaders, forgetAgentKey, isPerson, obtainAgentKey, signOut } from './credentials.ts';
import { NEEDS_STEP_UP, stepUp } from './step-up.ts';

type SchemaOf<Response> = Response extends { readonly schema: infer Schema extends TSchema }
  ? Static<Schema>
  : undefined;
type Responses<Id extends OperationId> = (typeof OPERATIONS)[Id]['responses'];
export type ResponseBody<Id extends OperationId> = SchemaOf<Responses<Id>[keyof Responses<Id>]>;

type InputPart<
  Id extends OperationId,
  Part extends 'params' | 'query' | 'body',
> = OperationInput<Id>[Part] extends undefined
  ? { readonly [Key in Part]?: undefined }
  : Part extends 'params'
    ? { readonly [Key in Part]: OperationInput<Id>[Part] }
    : { readonly [Key in Part]?: OperationInput<Id>[Part] };

export type Input<Id extends OperationId> = InputPart<Id, 'params'> &
  InputPart<Id, 'query'> &
  InputPart<Id, 'body'> & {
    /** The application, for operations that require an agent key. */
    readonly app?: string;
    /** Form data instead of a JSON body, for uploads. */
    readonly form?: FormData;
    readonly headers?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal;
  };

export interface Reply<Id extends OperationId> {
  readonly body: ResponseBody<Id>;
  readonly headers: Headers;
}

/** Whether the service has the operation. The console hides features whose operation is missing. */
export const isOffered = (id: string): boolean => id in BERTH_OPERATIONS;

export const call = async <Id extends OperationId>(id: Id, input: Input<Id>): Promise<ResponseBody<Id>> =>
  (await callWithHeaders(id, input)).body;

export async function callWithHeaders<Id extends OperationId>(id: Id, input: Input<Id>): Promise<Reply<Id>> {
  const response = await sendRequest(id, input);
  const text = await response.text();
  const isJson = (response.headers.get('content-type') ?? '').includes('json');
  // The contract defines the body of a successful response.
  return { body: (isJson && text !== '' ? JSON.parse(text) : text) as ResponseBody<Id>, headers: response.headers };
}

/**
 * Returns the raw response, for streams and files. Throws an error if the status is an error. If the service requires a
 * recent proof of identity, asks for the proof and sends the request again.
 */
export async function sendRequest<Id extends OperationId>(id: Id, input: Input<Id>): Promise<Response> {
  const response = await sendOnce(id, input);
  if (response.status !== 401) return requireSuccess(response);
  if ((await readErrorCode(response)) === NEEDS_STEP_UP) {
    await stepUp();
    return requireSuccess(await sendOnce(id, input));
  }
  const kind = credentialOf(id);
  if (kind === 'public' || id === 'stepUp') return requireSuccess(response);
  if (kind === 'account' || kind === 'agentKeyOrAccount' || kind === 'human') {
    if (kind !== 'human' || isPerson()) signOut('Your sign-in has expired or was ended. Sign in again.');
    return requireSuccess(response);
  }
  // The key was revoked before it expired. The request had no effect, so it is sent again with a new key.
  forgetAgentKey(input.app ?? '');
  return requireSuccess(await sendOnce(id, input));
}

const readErrorCode = async (response: Response): Promise<unknown> =>
  Object(
    await response
      .clone()
      .json()
      .catch(() => ({})),
  ).code;

const credentialOf = (id: OperationId): string => BERTH_OPERATIONS[id]?.credential ?? 'public';

async function sendOnce<Id extends OperationId>(id: Id, input: Input<Id>): Promise<Response> {
  const offeredOperation = BERTH_OPERATIONS[id];
  if (!offeredOperation) throw new Error(`this service does not have the operation ${id}`);
  const { body, form, headers = {}, signal } = input;
  try {
    return await fetch(urlOf(offeredOperation.path, input.params, input.query), {
      method: offeredOperation.method,
      headers: {
        accept: 'application/json',
        ...(await credentialHeaders(offeredOperation.credential, input.app)),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(form ? { body: form } : {}),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    // Aborts are rethrown unchanged. So are API errors that occurred while the credential was being obtained.
    if (signal?.aborted || error instanceof ApiError) throw error;
    throw new ApiError(
      0,
      {},
      'Berth is not responding. Check that the service is running and that this browser can reach it.',
    );
  }
}

async function credentialHeaders(kind: string, app: string | undefined): Promise<Record<string, string>> {
  if (kind === 'account' || kind === 'agentKeyOrAccount') return accountHeaders();
  if (kind === 'agentKey' && app !== undefined) return { authorization: `Bearer ${await obtainAgentKey(app)}` };
  return {};
}

async function requireSuccess(response: Response): Promise<Response> {
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new ApiError(response.status, Object(body), `The service responded with status ${response.status}.`);
}

export function urlOf(path: string, params: unknown = {}, query: unknown = {}): string {
  const paramsByName = new Map(Object.entries(Object(params)));
  const filledPath = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(paramsByName.get(name) ?? '')),
  );
  const search = new URLSearchParams(
    Object.entries(Object(query)).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[name, String(value)]],
    ),
  );
  return search.size > 0 ? `${filledPath}?${search}` : filledPath;
}
