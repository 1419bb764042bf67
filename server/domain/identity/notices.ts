// The format of the store's notifications about changed credentials.

export interface Notice {
  /** The hash of the credential, in hex. */
  readonly hash: string;
  /** Whether open connections of the key stay open. */
  readonly keepsConnections: boolean;
}

export function parseNotice(payload: string): Notice {
  const [hash = '', mode] = payload.split(' ');
  return { hash, keepsConnections: mode === 'keep' };
}
