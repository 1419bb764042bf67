// Why a response from an OpenID provider was rejected. The messages are for callers of the API: they name a rule, never
// the content of a response or an address.

export class OpenIdError extends Error {
  constructor(words: string) {
    super(words);
    this.name = 'OpenIdError';
  }
}

export type Outcome<Value> = { readonly value: Value } | { readonly words: string };

/** Runs work and returns its value, or the message of an OpenIdError. Other errors are bugs and are thrown. */
export async function outcomeOf<Value>(work: () => Promise<Value>): Promise<Outcome<Value>> {
  try {
    return { value: await work() };
  } catch (error) {
    if (error instanceof OpenIdError) return { words: error.message };
    throw error;
  }
}
