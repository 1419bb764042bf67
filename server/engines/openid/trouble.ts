// Why an OpenID provider was not believed. The words are for callers of the API: they name a rule, never an answer or address.

export class OpenIdTrouble extends Error {
  constructor(words: string) {
    super(words);
    this.name = 'OpenIdTrouble';
  }
}

export type Outcome<Value> = { readonly value: Value } | { readonly words: string };

/** What the engine throws as a value. Other errors are bugs. */
export async function outcomeOf<Value>(work: () => Promise<Value>): Promise<Outcome<Value>> {
  try {
    return { value: await work() };
  } catch (error) {
    if (error instanceof OpenIdTrouble) return { words: error.message };
    throw error;
  }
}
