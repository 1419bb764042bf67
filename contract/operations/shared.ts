// What several families of operations say.
export const READ_APPLICATIONS = ['applications:read', 'applications:write', 'keys:write'] as const;

export const ETAG = { ETag: 'The revision in quotes; send it as `If-Match` to change it.' } as const;

export const ADMITTED = {
  'x-ratelimit-limit': 'The limit that a next create would meet first: of running sessions, or of creates a minute.',
  'x-ratelimit-remaining': 'How many more it allows now.',
  'x-ratelimit-reset': 'Seconds after which it allows more, or after which asking again makes sense.',
  'x-berth-waited': 'With `Prefer: wait`: the milliseconds that the create stood in line.',
} as const;
