// The schema options of the ids of stored credentials.

export const CREDENTIAL_ID_OPTIONS = { pattern: '^[a-z][a-z0-9-]{0,63}$' } as const;
