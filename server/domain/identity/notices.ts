// The format of the store's notifications about changed credentials.

export interface Notice {
  /** The hash of the credential, in hex. */
  readonly hash: string;
  /** Whether open connections of the key stay open. */
  readonly shouldKeepConnections: boolean;
}

export function parseNotice(payload: string): Notice {
  const [hash = '', mode] = payload.split(' ');
  return { hash, shouldKeepConnections: mode === 'keep' };
}
