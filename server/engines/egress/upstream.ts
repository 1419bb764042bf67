// A proxy through which a session reaches its hosts.
import type { Secret } from '../../kit/secret.ts';

export interface Upstream {
  /**
   * The name used in events and errors: the path of the proxy in the create body, or the operator's name for it. Never
   * its address.
   */
  readonly name: string;
  readonly scheme: 'http' | 'https' | 'socks5';
  readonly hostname: string;
  readonly port: number;
  readonly credentials?: { readonly username: string; readonly password: Secret } | undefined;
  /** Whether the operator configured the proxy. Such a proxy may have a private address. */
  readonly trusted: boolean;
}
