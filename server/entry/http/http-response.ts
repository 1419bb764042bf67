// The result of a handler. The status defaults to the first status that the operation declares.

export interface HttpResponse {
  readonly body?: unknown;
  readonly status?: number;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const jsonResponse = (body: unknown, headers: Readonly<Record<string, string>> = {}): HttpResponse => ({
  body,
  headers,
});

/** A response with a resource whose revision is sent as the ETag. */
export const responseWithETag = (body: { readonly revision: number }): HttpResponse =>
  jsonResponse(body, { etag: `"${body.revision}"` });

export const emptyResponse = (): HttpResponse => ({});
