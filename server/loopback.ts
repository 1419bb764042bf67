// Whether a server that listens on this host can be reached from this machine only.
import { isIP } from 'node:net';

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
