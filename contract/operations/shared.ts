// What several families of operations say.
export const READ_APPLICATIONS = ['applications:read', 'applications:write', 'keys:write'] as const;

export const ETAG = { ETag: 'The revision in quotes; send it as `If-Match` to change it.' } as const;

export const ADMITTED = {
  'x-ratelimit-limit': 'The limit that a next create would meet first: of running sessions, or of creates a minute.',
  'x-ratelimit-remaining': 'How many more it allows now.',
  'x-ratelimit-reset': 'Seconds after which it allows more, or after which asking again makes sense.',
  'x-berth-waited': 'With `Prefer: wait`: the milliseconds that the create stood in line.',
} as const;

export const UNBUFFERED = { 'x-accel-buffering': 'Of a stream: `no`, for proxies in front.' } as const;

/** Of a file that may be asked for in parts. */
export const FILE = {
  ETag: 'The SHA-256 of the bytes in quotes; send it as `If-None-Match` or `If-Range`.',
  'accept-ranges': '`bytes`.',
  'last-modified': 'When it was made.',
  'content-disposition': 'Its name.',
} as const;

export const PART = { ...FILE, 'content-range': 'Which bytes of how many these are.' } as const;

/** Of what a page of any origin may read. */
export const FOR_ANY_ORIGIN = {
  'access-control-allow-origin': '`*`.',
  'access-control-expose-headers': 'Headers that scripts may read.',
} as const;
