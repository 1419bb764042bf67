// An error with a code from the catalogue (contract/errors.ts). Any other error is a bug or an external failure, and
// callers get the code `internal` for it.

export interface FaultOptions {
  /** What the caller should do next; appended to the message. */
  readonly advice?: string;
  /** Machine-readable facts for the error body. Never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

export class Fault<Code extends string = string> extends Error {
  readonly code: Code;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  constructor(code: Code, message: string, options: FaultOptions = {}) {
    super(options.advice ? `${message} ${options.advice}` : message, { cause: options.cause });
    this.name = 'Fault';
    this.code = code;
    this.details = options.details;
  }
}

export const isFault = (error: unknown, code?: string): error is Fault =>
  error instanceof Fault && (code === undefined || error.code === code);

/** Returns a description of any thrown value, with its chain of causes. */
export function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${reason(error.cause)}`;
}
