// Errors of the API.
import type { ErrorBody } from '../../../contract/common.ts';

/** The error in a response. `message` is the API's message, which tells the user what to do. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, body: Partial<ErrorBody>, fallback: string) {
    super(body.message ?? fallback);
    this.name = 'ApiError';
    this.status = status;
    this.code = body.code ?? 'unknown';
    this.requestId = body.requestId;
    this.details = Object(body.details);
  }
}
