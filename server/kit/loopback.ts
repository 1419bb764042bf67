// Whether a host, as URLs and listening addresses name it, can be reached from this machine only.
import { isIP } from 'node:net';

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'));
