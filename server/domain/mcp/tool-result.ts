// The result of an MCP tool call, which may include a request to a person.
import { notedRefusal, noteRefusal } from '../fleet/not-here.ts';

export interface ToolImage {
  readonly bytes: Uint8Array;
  readonly mimeType: string;
}

/** The object that a call is waiting for. The key that made the call can read it by its id. */
export type PendingWork =
  | { readonly kind: 'handoff'; readonly id: string }
  | { readonly kind: 'action'; readonly id: string }
  | { readonly kind: 'invocation'; readonly id: string };

/** An address that a person must open before there is a result. */
export interface PersonRequest {
  readonly url: string;
  /** Shown to the person. Contains nothing that a page or a model wrote. */
  readonly message: string;
  readonly pending: PendingWork;
}

/** The result of a tool. `addresses` are for the client program, not for the model. */
export interface ToolResult {
  readonly text: string;
  readonly image?: ToolImage;
  readonly isError?: true;
  readonly sessionId?: string;
  readonly addresses?: Readonly<Record<string, string>>;
  /** For clients that can open addresses. Other clients use `text`. */
  readonly personRequest?: PersonRequest;
}

/**
 * Returns a refusal as a result that describes it for the model. In a fleet, the result may be marked so that another
 * host can make the call.
 */
export function refusedResult(error: Error): ToolResult {
  const result: ToolResult = { text: error.message, isError: true };
  const placementRefusal = notedRefusal(error);
  return placementRefusal ? noteRefusal(placementRefusal, result) : result;
}

/** The response of the client to a `PersonRequest`. */
export type PersonAnswer = 'accept' | 'decline' | 'cancel';
