// Parts that several families of operations share.
export const READ_APPLICATIONS_SCOPES = ['applications:read', 'applications:write', 'keys:write'] as const;

export const ETAG = { ETag: 'The revision in double quotes. Send it as `If-Match` with a change.' } as const;

export const ADMISSION_HEADERS = {
  'x-ratelimit-limit': 'The limit that the next create would reach first: running sessions, or creates per minute.',
  'x-ratelimit-remaining': 'How many more creates the limit allows.',
  'x-ratelimit-reset': 'Seconds until the limit allows more creates, or until a retry is useful.',
  'x-berth-waited': 'With `Prefer: wait`, how long the create was queued, in milliseconds.',
} as const;

export const UNBUFFERED_HEADERS = {
  'x-accel-buffering': 'For a stream, `no`, which tells reverse proxies not to buffer it.',
} as const;

/** Response headers for a file of which a caller may request byte ranges. */
export const FILE_HEADERS = {
  ETag: 'SHA-256 of the content in double quotes. Send it as `If-None-Match` or `If-Range`.',
  'accept-ranges': '`bytes`.',
  'last-modified': 'When the file was created.',
  'content-disposition': 'File name.',
} as const;

export const PART_HEADERS = {
  ...FILE_HEADERS,
  'content-range': 'The byte range that is returned, and the total size.',
} as const;

/** Headers of responses that pages of any origin may read. */
export const ANY_ORIGIN_HEADERS = {
  'access-control-allow-origin': '`*`.',
  'access-control-expose-headers': 'Headers that scripts of other origins may read.',
} as const;
