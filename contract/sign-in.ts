// Signing in: how strongly a person has proved who they are.

/**
 * Authentication context (`acr`), weakest first: one factor, two factors, a passkey with user verification, which resists
 * phishing. `phr` is the value that OpenID Connect registers for it.
 */
export const ACRS = ['berth:1', 'berth:2', 'phr'] as const;
export type Acr = (typeof ACRS)[number];

/** A step-up needs a proof that is at most this old. */
export const STEP_UP_MAX_AGE_SECONDS = 300;
