// Parses the target of a request as the WHATWG URL standard parses a host. A target that the standard rejects, or that
// could be read in two ways, is rejected. Pure.
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
  /** The value of the Host header, without the default port of the scheme. */
  readonly host: string;
  /** Path and query, unchanged. */
  readonly path: string;
}

const HOSTNAME_CHARACTERS_MAX = 253;
const AUTHORITY_PATTERN = /^(\[[^\]]*\]|[^[\]:]+):(\d{1,5})$/;
/**
 * Only printable ASCII characters that are not URL delimiters are accepted. This excludes characters that end the host
 * in a URL, characters that URL parsing drops or changes, and bytes above 127, which Node decodes as Latin-1. Non-ASCII
 * names arrive as punycode or percent-encoded.
 */
const PRINTABLE_ASCII_PATTERN = /^[!-~]+$/;
const URL_DELIMITER_PATTERN = /[/\\?#@]/;

/** Parses the `host:port` of a CONNECT request. */
export function parseAuthority(authority: string): Target | undefined {
  const match = AUTHORITY_PATTERN.exec(authority);
  if (!match?.[1] || !match[2] || !isPlainAuthority(authority)) return undefined;
  const url = parse(`http://${match[1]}/`);
  return url && targetAt(url.hostname, Number(match[2]));
}

const ABSOLUTE_URL_PATTERN = /^http:\/\/([^/?#]+)([^#]*)/i;

/** Parses the `http://host/path` of a plain request through a proxy. */
export function parseAbsoluteTarget(requestTarget: string): AbsoluteTarget | undefined {
  const match = ABSOLUTE_URL_PATTERN.exec(requestTarget);
  if (!match?.[1] || !isPlainAuthority(match[1])) return undefined;
  const url = parse(`http://${match[1]}/`);
  // Parsing the whole URL must give the same host; otherwise the target is ambiguous.
  if (!url || parse(requestTarget)?.host !== url.host) return undefined;
  const target = targetAt(url.hostname, url.port === '' ? 80 : Number(url.port));
  const pathAndQuery = match[2] ?? '';
  return target && { target, host: url.host, path: pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}` };
}

const isPlainAuthority = (authority: string): boolean =>
  PRINTABLE_ASCII_PATTERN.test(authority) && !URL_DELIMITER_PATTERN.test(authority);

const parse = (text: string): URL | undefined => URL.parse(text) ?? undefined;

/** Returns the target for a hostname that was parsed by `URL`. */
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
