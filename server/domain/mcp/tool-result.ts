// What a tool answers with.

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

/** What the client did with the address. */
export type PersonAnswer = 'accept' | 'decline' | 'cancel';
