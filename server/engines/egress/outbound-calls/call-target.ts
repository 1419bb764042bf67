// Parses the URL of a call as the WHATWG URL standard does: non-ASCII names become punycode, and a decimal or octal
// IPv4 address becomes one in dotted-decimal form. Pure.
import { type Target, targetAt } from '../target.ts';
import { CallError } from './call-failure.ts';

export interface CallTarget extends Target {
  readonly isEncrypted: boolean;
  /** For the Host header. */
  readonly host: string;
  /** Path and query. */
  readonly path: string;
}

const DEFAULT_PORTS = { 'https:': 443, 'http:': 80 } as const;
/** Characters that URL parsing drops or replaces. */
const AMBIGUOUS_PATTERN = /[\u0000-\u0020\u007f\\]/;

/** @throws CallError */
export function parseCallTarget(text: string, charactersMax: number): CallTarget {
  const url = text.length > charactersMax || AMBIGUOUS_PATTERN.test(text) ? undefined : (URL.parse(text) ?? undefined);
  if (!url) throw new CallError('bad_url');
  const { protocol } = url;
  if (protocol !== 'https:' && protocol !== 'http:') throw new CallError('not_https');
  if (hasUserInfo(text)) throw new CallError('user_info');
  const defaultPort = DEFAULT_PORTS[protocol];
  const target = targetAt(url.hostname, url.port === '' ? defaultPort : Number(url.port));
  if (!target) throw new CallError('bad_url');
  const name = target.address?.family === 6 ? `[${target.hostname}]` : target.hostname;
  return {
    ...target,
    isEncrypted: protocol === 'https:',
    host: target.port === defaultPort ? name : `${name}:${target.port}`,
    path: `${url.pathname}${url.search}`,
  };
}

/** Whether a URL contains user information, even an empty user name, which parsing drops: `https://@host/`. */
const hasUserInfo = (text: string): boolean => /^[a-z]+:\/*[^/?#]*@/i.test(text);
