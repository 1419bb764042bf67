// What a tool answers with.
import { noteRefused, refusedHere } from '../fleet/not-here.ts';

export interface ToolImage {
  readonly bytes: Uint8Array;
  readonly mimeType: string;
}

/** What a call waits for, by the id that the same key can read it with. */
export type Pending =
  | { readonly kind: 'handoff'; readonly id: string }
  | { readonly kind: 'action'; readonly id: string }
  | { readonly kind: 'invocation'; readonly id: string };

/** A person has to open an address before there is a result. */
export interface AskedPerson {
  readonly url: string;
  /** For the person, without anything that a page or a model wrote. */
  readonly message: string;
  readonly pending: Pending;
}

/** The result of a tool. `addresses` are for the client program, not for the model. */
export interface ToolResult {
  readonly text: string;
  readonly image?: ToolImage;
  readonly isError?: true;
  readonly sessionId?: string;
  readonly addresses?: Readonly<Record<string, string>>;
  /** A client that can open addresses is asked to; `text` is for those that cannot. */
  readonly person?: AskedPerson;
}

/** A refusal is a result that describes it for the model. In a fleet it may say that another host may do it. */
export function refusedResult(error: Error): ToolResult {
  const result: ToolResult = { text: error.message, isError: true };
  const refused = refusedHere(error);
  return refused ? noteRefused(refused, result) : result;
}

/** What the client did with the address. */
export type PersonAnswer = 'accept' | 'decline' | 'cancel';
