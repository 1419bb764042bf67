// A proxy between us and what a session visits: what it is called and where it is.
import type { Secret } from '../../kit/secret.ts';

export interface Upstream {
  /** What events and errors call it: its place in the create body, or the operator's name for it. Never its address. */
  readonly name: string;
  readonly scheme: 'http' | 'https' | 'socks5';
  readonly hostname: string;
  readonly port: number;
  readonly credentials?: { readonly username: string; readonly password: Secret } | undefined;
  /** The operator named it: it may stand on a private address. */
  readonly trusted: boolean;
}
