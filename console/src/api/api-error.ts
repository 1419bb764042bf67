// What the API says when it does not do what it was asked: its message is for people and says what to do next.
import type { ErrorBody } from '../../../contract/common.ts';

/** An answer that is no success. `message` is the API's, which says what to do next. */
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
