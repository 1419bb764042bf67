// Where a request wants to go, read exactly as the WHATWG URL standard reads a host (pure). What that standard does
// not read, or reads differently from how it is written, is no target.
import { type Address, parseAddress } from './address.ts';

export interface Target {
  /** Lower case, punycode, no brackets, no trailing dot; an address in its shortest form. */
  readonly hostname: string;
  readonly port: number;
  /** Present when the hostname is an address and not a name. */
  readonly address?: Address;
}

export interface AbsoluteTarget {
  readonly target: Target;
  /** For the Host header: the port is left out where it is the scheme's own. */
  readonly host: string;
  /** Path and query as they were sent: they are the server's business. */
  readonly path: string;
}

const HOSTNAME_CHARACTERS_MAX = 253;
const AUTHORITY = /^(\[[^\]]*\]|[^[\]:]+):(\d{1,5})$/;
/**
 * What would end the host inside a URL, or is dropped or turned there; and bytes above 127, which reach us decoded as
 * Latin-1. Names in other scripts come as punycode, or percent-encoded.
 */
const IN_A_HOST = /^[!-~]+$/;
const NOT_IN_A_HOST = /[/\\?#@]/;

/** The `host:port` of CONNECT. */
export function authorityTarget(authority: string): Target | undefined {
  const match = AUTHORITY.exec(authority);
  if (!match?.[1] || !match[2] || !isPlain(authority)) return undefined;
  const url = parse(`http://${match[1]}/`);
  return url && targetAt(url.hostname, Number(match[2]));
}

const ABSOLUTE = /^http:\/\/([^/?#]+)([^#]*)/i;

/** The `http://host/path` of a plain request through a proxy. */
export function absoluteTarget(requestTarget: string): AbsoluteTarget | undefined {
  const match = ABSOLUTE.exec(requestTarget);
  if (!match?.[1] || !isPlain(match[1])) return undefined;
  const url = parse(`http://${match[1]}/`);
  // Parsed as a whole it must lead to the same host, or the two of us read it differently.
  if (!url || parse(requestTarget)?.host !== url.host) return undefined;
  const target = targetAt(url.hostname, url.port === '' ? 80 : Number(url.port));
  const rest = match[2] ?? '';
  return target && { target, host: url.host, path: rest.startsWith('/') ? rest : `/${rest}` };
}

const isPlain = (authority: string): boolean => IN_A_HOST.test(authority) && !NOT_IN_A_HOST.test(authority);

const parse = (text: string): URL | undefined => URL.parse(text) ?? undefined;

/** From a hostname that the URL standard has already read. */
export function targetAt(urlHostname: string, port: number): Target | undefined {
  const hostname = urlHostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (port < 1 || port > 65535) return undefined;
  const address = parseAddress(hostname);
  if (address) return { hostname: address.text, port, address };
  return isName(hostname) ? { hostname, port } : undefined;
}

const isName = (hostname: string): boolean =>
  hostname.length <= HOSTNAME_CHARACTERS_MAX &&
  !hostname.includes(':') &&
  hostname.split('.').every(label => label !== '');
