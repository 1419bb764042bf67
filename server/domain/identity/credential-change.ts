// The format of the store's notifications about changed credentials.

export interface CredentialChange {
  /** The hash of the credential, in hex. */
  readonly hash: string;
  /** Whether open connections of the key stay open. */
  readonly shouldKeepConnections: boolean;
}

export function parseCredentialChange(payload: string): CredentialChange {
  const [hash = '', mode] = payload.split(' ');
  return { hash, shouldKeepConnections: mode === 'keep' };
}
