// What the store's notices of changed credentials say.

export interface Notice {
  /** The hex of the credential's hash. */
  readonly hash: string;
  /** What is open under the key stays open. */
  readonly keeps: boolean;
}

export function noticed(payload: string): Notice {
  const [hash = '', how] = payload.split(' ');
  return { hash, keeps: how === 'keep' };
}
