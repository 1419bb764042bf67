// The form of the ids of stored credentials.

export const CREDENTIAL_NAME = { pattern: '^[a-z][a-z0-9-]{0,63}$' } as const;
