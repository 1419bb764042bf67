// Fetches JSON from an OpenID provider through `send`, the sender of outgoing requests. Time and size are limited, and
// a response that is not a JSON object is refused.
import { parseJson } from '../../kit/foreign.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import { OpenIdError } from './trouble.ts';

const REQUEST_TIMEOUT_MS = 10_000;
const RESPONSE_BYTES_MAX = 262_144;

export interface Call {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly deadlineMs: number;
  readonly maxResponseBytes: number;
}

export type CallOutcome =
  | { readonly kind: 'answered'; readonly status: number; readonly body: Buffer }
  | { readonly kind: 'failed'; readonly message: string };

/** Sends a request to a user-supplied address. */
export type SendRequest = (call: Call) => Promise<CallOutcome>;

export async function fetchJson(
  send: SendRequest,
  description: string,
  call: Omit<Call, 'deadlineMs' | 'maxResponseBytes'>,
): Promise<{ readonly status: number; readonly json: JsonObject }> {
  const headers = { accept: 'application/json', ...call.headers };
  const response = await send({
    ...call,
    headers,
    deadlineMs: REQUEST_TIMEOUT_MS,
    maxResponseBytes: RESPONSE_BYTES_MAX,
  });
  if (response.kind === 'failed') throw new OpenIdError(`${description} could not be read. ${response.message}`);
  const json = parseJson(response.body);
  if (!isObject(json)) throw new OpenIdError(`${description} is not a JSON object.`);
  return { status: response.status, json };
}
