// The error class of the SDK, for error responses and for requests that got no response.
import { ERRORS } from '../contract/errors.ts';

const RESPONSE_EXCERPT_CHARACTERS_MAX = 200;

interface ErrorFields {
  readonly code: string;
  readonly message: string;
  readonly status?: number | undefined;
  readonly advice?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  readonly requestId?: string | undefined;
  readonly cause?: unknown;
}

export class BerthError extends Error {
  /**
   * An error code of the service, or one of the codes that the SDK adds: `unreachable`, `unexpected_answer`,
   * `no_credential`, `wait_timeout`, `wrong_end`.
   */
  readonly code: string;
  /** Absent if there was no response. */
  readonly status: number | undefined;
  /** What to do about the error. */
  readonly advice: string | undefined;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  /** The id of the request. Include it when you report a problem. */
  readonly requestId: string | undefined;

  constructor({ code, message, status, advice, details, requestId, cause }: ErrorFields) {
    super(message, cause === undefined ? {} : { cause });
    this.name = 'BerthError';
    this.code = code;
    this.status = status;
    this.advice = advice;
    this.details = details;
    this.requestId = requestId;
  }
}

/** Converts a response with a failure status to an error. */
export async function readError(response: Response): Promise<BerthError> {
  const text = await response.text();
  const body = parseJson(text);
  const { status } = response;
  if (isJsonObject(body) && typeof body.code === 'string' && typeof body.message === 'string') {
    const { code, message, details, requestId } = body;
    return new BerthError({
      ...{ code, message, status },
      advice: adviceFor(code),
      details: isJsonObject(details) ? details : undefined,
      requestId: typeof requestId === 'string' ? requestId : undefined,
    });
  }
  return new BerthError({
    code: 'unexpected_answer',
    message: `${response.url} responded with the status ${status}: ${text.slice(0, RESPONSE_EXCERPT_CHARACTERS_MAX)}`,
    status,
    advice: 'Check that the address is that of a Berth service, and check any proxy in front of it.',
  });
}

/** Returns the error for a request that got no response. */
export function unreachableError(url: string, cause: unknown): BerthError {
  return new BerthError({
    code: 'unreachable',
    message: `${new URL(url).origin} does not respond: ${reasonOf(cause)}`,
    advice: 'Check the address, and check that the service is running.',
    cause,
  });
}

const adviceFor = (code: string): string | undefined =>
  Object.entries(ERRORS).find(([known]) => known === code)?.[1].whatToDo;

/** Returns why a `fetch` failed. The reason is in the `cause` of the error that `fetch` throws. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return cause.cause instanceof Error ? reasonOf(cause.cause) : cause.message || cause.name;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isJsonObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
