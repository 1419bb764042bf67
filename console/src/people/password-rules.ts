// What a new password must have.

/** As in contract/sign-in.ts. */
export const PASSWORD_CHARACTERS_MIN = 12;
