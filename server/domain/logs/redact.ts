// Redacts credentials in URLs, headers and text. Pure, apart from a cache. Applied before anything is stored. Input is
// untrusted, so its length is limited, and it is made well-formed first.
import { hash } from 'node:crypto';
import { boundedText } from '../../kit/foreign.ts';

export const REDACTED = '[redacted]';
/** Appended to truncated text. */
export const CUT = '…[cut]';

const URL_CHARS_MAX = 2_048;
/** Only this much of a URL is scanned. The rest is neither scanned nor kept. */
const URL_SCANNED_CHARS_MAX = 4 * URL_CHARS_MAX;
/**
 * The depth to which URLs inside parameters of other URLs are redacted. URLs that are nested deeper are replaced as a
 * whole.
 */
const URL_DEPTH_MAX = 4;
const TEXT_SCANNED_CHARS_MAX = 8_192;
const HEADER_CHARS_MAX = 2_048;
const HEADER_NAME_CHARS_MAX = 256;
const HEADERS_MAX = 100;
const DATA_URL_CHARS_MAX = 64;

/** Names of secrets. Case and punctuation are ignored. */
const SECRET_NAMES_PATTERN =
  /^(x?(access|refresh|id|auth|csrf|xsrf|api|session|security|bearer|oauth|reset|login|magic|invite|verification|device|client|private|signing|app)*(token|secret|password|passwd|passphrase|pwd|passcode|apikey|key|jwt|signature|credentials?|assertion|sessionid|sid|auth|authorization|code|otp|pin|nonce|verifier))$|^(token|secret|pass|pw|sig|hmac|samlresponse|samlrequest|relaystate|phpsessid|jsessionid|aspsessionid|codeverifier|xamzsignature|xamzcredential|xamzsecuritytoken|xgoogsignature|xgoogcredential|awsaccesskeyid|ticket|session|state)$/;
/** A name that contains one of these is secret. */
const SECRET_PARTS_PATTERN = /token|secret|passw|apikey|credential|signature|sessionid/;

/** Names that are secret as a URL parameter, but common words in text. */
const COMMON_WORDS_PATTERN = /^(code|state|key|auth|session|nonce|pin|ticket|verifier|assertion|credentials?)$/i;
const NAME_CHARS_MAX = 128;

export function isSecretName(name: string): boolean {
  const normalizedName = name
    .slice(0, NAME_CHARS_MAX)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');
  return SECRET_NAMES_PATTERN.test(normalizedName) || SECRET_PARTS_PATTERN.test(normalizedName);
}

const SECRET_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'cookie2',
  'set-cookie',
  'set-cookie2',
  'www-authenticate',
  'proxy-authenticate',
  'authentication-info',
  'proxy-authentication-info',
  'x-amz-security-token',
]);
const URL_HEADERS: ReadonlySet<string> = new Set([
  'location',
  'content-location',
  'referer',
  'refresh',
  'link',
  ':path',
  'sourcemap',
  'x-sourcemap',
]);

export const truncate = (text: string, charsMax: number): string =>
  text.length <= charsMax ? text.toWellFormed() : boundedText(text, charsMax) + CUT;

/** Redacts the user info of a URL, and the values of parameters with secret names in its query and fragment. */
export function redactUrl(rawUrl: string): string {
  const url = boundedText(rawUrl, URL_SCANNED_CHARS_MAX);
  const isCut = url.length < rawUrl.length;
  if (url.length < RECENT_URL_CHARS_MIN) return redactScannedUrl(url, isCut);
  const key = hash('sha256', isCut ? url + CUT : url, 'base64');
  const cleanUrl = recentUrls.get(key) ?? flatCopy(redactScannedUrl(url, isCut));
  // The entry moves to the end: the map is in the order of use.
  recentUrls.delete(key);
  recentUrls.set(key, cleanUrl);
  const [oldestKey = key] = recentUrls.keys();
  if (recentUrls.size > RECENT_URLS_MAX) recentUrls.delete(oldestKey);
  return cleanUrl;
}

/**
 * Results for the most recently used long URLs, by the digest of what was scanned. Every request of a page repeats the
 * URL of its document, and often that of a script.
 */
const recentUrls = new Map<string, string>();
const RECENT_URLS_MAX = 64;
/** Shorter URLs are redacted quickly enough. */
const RECENT_URL_CHARS_MIN = 1_024;

/** A part of a string keeps the whole string in memory. A copy does not. */
const flatCopy = (text: string): string => Buffer.from(text).toString();

function redactScannedUrl(url: string, isCut: boolean): string {
  if (/^\s*data:/i.test(url))
    return truncate(url, url.indexOf(',') < 0 ? 0 : Math.min(url.indexOf(','), DATA_URL_CHARS_MAX));
  if (/^\s*javascript:/i.test(url)) return `javascript:${REDACTED}`;
  // The authority is longer than the scanned part, so it may contain a password.
  if (isCut && ONLY_AUTHORITY_PATTERN.test(url)) return REDACTED + CUT;
  return truncate(withoutSecretParameters(withoutUserInfo(url), URL_DEPTH_MAX), URL_CHARS_MAX);
}

const ONLY_AUTHORITY_PATTERN = /^\s*(?:[a-z][a-z0-9+.-]*:)+[/\\]{2,}[^/\\?#]*$/i;

const withoutUserInfo = (url: string): string =>
  url.replace(/^(\s*(?:[a-z][a-z0-9+.-]*:)+[/\\]{2,})([^/\\?#]*)@/i, (_, head: string) => `${head}${REDACTED}@`);

function withoutSecretParameters(url: string, depth: number): string {
  const tailStart = url.search(/[?#;]/);
  if (tailStart < 0) return url;
  let removedChars = 0;
  const tail = url
    .slice(tailStart)
    .replace(/([?&#;/]|^)([^=&?#;/]{1,128})=([^&#;]*)/g, (match, prefix, name, value, at: number) => {
      // The result is truncated before this parameter. Decoding never makes a nested URL longer, so this also holds for
      // a parameter of a nested URL.
      if (value === '' || tailStart + at - removedChars > URL_CHARS_MAX) return match;
      const cleanValue = isSecretName(decode(name)) ? REDACTED : redactNestedUrl(value, depth);
      removedChars += value.length - cleanValue.length;
      return `${prefix}${name}=${cleanValue}`;
    });
  return url.slice(0, tailStart) + tail;
}

/** Redacts a parameter value that is itself a URL with secrets. */
function redactNestedUrl(value: string, depth: number): string {
  const decodedValue = decode(value);
  if (!/[?#@]/.test(decodedValue) || !/^[a-z]+:|^\//i.test(decodedValue)) return value;
  if (depth === 0) return REDACTED;
  const cleanUrl = withoutSecretParameters(withoutUserInfo(decodedValue), depth - 1);
  return cleanUrl === decodedValue ? value : encodeURIComponent(cleanUrl);
}

function decode(text: string): string {
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

/** Redacts secrets in header values. Names are kept, so that readers see that there was a credential. */
export function redactHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const keptHeaders: Record<string, string> = {};
  for (const [rawName, value] of Object.entries(headers).slice(0, HEADERS_MAX)) {
    const name = boundedText(rawName, HEADER_NAME_CHARS_MAX);
    if (typeof value === 'string') keptHeaders[name] = redactHeader(name, value);
  }
  return keptHeaders;
}

function redactHeader(name: string, text: string): string {
  const lowerName = name.toLowerCase();
  if (SECRET_HEADERS.has(lowerName) || isSecretName(lowerName)) return REDACTED;
  if (URL_HEADERS.has(lowerName)) return truncate(redactText(redactUrl(text)), HEADER_CHARS_MAX);
  return truncate(redactText(text), HEADER_CHARS_MAX);
}

const URL_PATTERN = /\b(?:https?|wss?|ftp):\/\/[^\s"'`<>\\)\]}]+/gi;
const AUTH_SCHEME_PATTERN = /\b(bearer|basic|digest|negotiate|token)(\s+)([a-z0-9+/=_.~-]{8,})/gi;
/** Matches runs of characters that can occur in a JSON Web Token. Each run is scanned once. */
const JWT_RUN_PATTERN = /[\w.-]{16,}/g;
const JWT_HEAD_PATTERN = /\beyJ[\w-]{6,}$/;
/**
 * Headers with credentials, such as `Set-Cookie: a=b; c=d`. `PAIR_PATTERN` matches names with values, such as
 * `password: "x"`, `"token":"x"` and `api_key=x`.
 */
const CREDENTIAL_HEADER_PATTERN =
  /\b(set-cookie2?|cookie2?|(?:proxy-)?authorization)(["']?\s*[:=]\s*)("[^"]*"|'[^']*'|[^\r\n]+)/gi;
const PAIR_PATTERN = /([\w.-]{2,64})(["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&"'{}()[\]<>]+)/g;

/** Redacts everything that looks like a credential in free text. */
export function redactText(rawText: string): string {
  const text = boundedText(rawText, TEXT_SCANNED_CHARS_MAX);
  if (text.length < 4) return text;
  let cleanText = text;
  if (cleanText.includes('://')) cleanText = cleanText.replace(URL_PATTERN, url => redactUrl(url));
  if (cleanText.includes('eyJ')) cleanText = cleanText.replace(JWT_RUN_PATTERN, withoutJwts);
  cleanText = cleanText.replace(
    AUTH_SCHEME_PATTERN,
    (_, scheme: string, space: string) => `${scheme}${space}${REDACTED}`,
  );
  if (!/[:=]/.test(cleanText)) return cleanText;
  cleanText = cleanText.replace(
    CREDENTIAL_HEADER_PATTERN,
    (_, name: string, separator: string) => `${name}${separator}${REDACTED}`,
  );
  return cleanText.replace(PAIR_PATTERN, (pair, name: string, separator: string, value: string) =>
    value !== REDACTED && isSecretName(name) && !COMMON_WORDS_PATTERN.test(name)
      ? `${name}${separator}${REDACTED}`
      : pair,
  );
}

/** Redacts the JSON Web Tokens in a run. A token has two or three parts separated by dots. */
function withoutJwts(run: string): string {
  const parts = run.split('.');
  const cleanParts: string[] = [];
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] ?? '';
    const isToken = JWT_HEAD_PATTERN.test(part) && (parts[at + 1] ?? '').length >= 6;
    cleanParts.push(isToken ? part.replace(JWT_HEAD_PATTERN, REDACTED) : part);
    if (isToken) at += 2;
  }
  return cleanParts.join('.');
}
