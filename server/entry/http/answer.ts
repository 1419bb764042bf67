// What a handler gives back. The status is the operation's own unless one is named.

export interface Answer {
  readonly body?: unknown;
  readonly status?: number;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const answer = (body: unknown, headers: Readonly<Record<string, string>> = {}): Answer => ({ body, headers });

/** For things with a revision. */
export const tagged = (body: { readonly revision: number }): Answer => answer(body, { etag: `"${body.revision}"` });

export const nothing = (): Answer => ({});
