// Takes out of a log what must never be kept: credentials in addresses, headers and text. Pure, and applied before
// anything is stored.

export const REDACTED = '[redacted]';
/** What is cut says so. */
export const CUT = '…[cut]';

const URL_CHARS_MAX = 2_048;
const HEADER_CHARS_MAX = 2_048;
const HEADERS_MAX = 100;
const DATA_URL_CHARS = 64;

/** Names are compared without case, dashes, dots, underscores and brackets. */
const SECRET_NAMES =
  /^(x?(access|refresh|id|auth|csrf|xsrf|api|session|security|bearer|oauth|reset|login|magic|invite|verification|device|client|private|signing|app)*(token|secret|password|passwd|passphrase|pwd|passcode|apikey|key|jwt|signature|credentials?|assertion|sessionid|sid|auth|authorization|code|otp|pin|nonce|verifier))$|^(token|secret|pass|pw|sig|hmac|samlresponse|samlrequest|relaystate|phpsessid|jsessionid|aspsessionid|codeverifier|xamzsignature|xamzcredential|xamzsecuritytoken|xgoogsignature|xgoogcredential|awsaccesskeyid|ticket|session|state)$/;
/** In the middle of a longer name. */
const SECRET_PARTS = /token|secret|passw|apikey|credential|signature|sessionid/;

/** Secret in an address, an ordinary word in text. */
const ORDINARY_IN_TEXT = /^(code|state|key|auth|session|nonce|pin|ticket|verifier|assertion|credentials?)$/i;
const NAME_CHARS_MAX = 128;

export function isSecretName(name: string): boolean {
  const plain = name
    .slice(0, NAME_CHARS_MAX)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');
  return SECRET_NAMES.test(plain) || SECRET_PARTS.test(plain);
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

export const capped = (text: string, charsMax: number): string =>
  text.length <= charsMax ? text : text.slice(0, charsMax) + CUT;

/** Without user-info and without the values of parameters that are known to be secret, in the query and the fragment. */
export function redactUrl(url: string): string {
  if (/^\s*data:/i.test(url)) return capped(url, url.indexOf(',') < 0 ? 0 : Math.min(url.indexOf(','), DATA_URL_CHARS));
  if (/^\s*javascript:/i.test(url)) return `javascript:${REDACTED}`;
  return capped(withoutSecretParameters(withoutUserInfo(url)), URL_CHARS_MAX);
}

const withoutUserInfo = (url: string): string =>
  url.replace(/^(\s*(?:[a-z][a-z0-9+.-]*:)+[/\\]{2,})([^/\\?#]*)@/i, (_, head: string) => `${head}${REDACTED}@`);

function withoutSecretParameters(url: string): string {
  const at = url.search(/[?#;]/);
  if (at < 0) return url;
  const tail = url.slice(at).replace(/([?&#;/]|^)([^=&?#;/]{1,128})=([^&#;]*)/g, (whole, before, name, value) => {
    if (value === '') return whole;
    if (isSecretName(decoded(name))) return `${before}${name}=${REDACTED}`;
    return `${before}${name}=${withinValue(value)}`;
  });
  return url.slice(0, at) + tail;
}

/** An address inside a parameter may have secrets of its own. */
function withinValue(value: string): string {
  const inner = decoded(value);
  if (!/[?#@]/.test(inner) || !/^[a-z]+:|^\//i.test(inner)) return value;
  const clean = withoutSecretParameters(withoutUserInfo(inner));
  return clean === inner ? value : encodeURIComponent(clean);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

/** Names stay, so that one sees that there was a credential. */
export function redactHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers).slice(0, HEADERS_MAX)) kept[name] = redactHeader(name, value);
  return kept;
}

function redactHeader(name: string, value: unknown): string {
  const plain = name.toLowerCase();
  if (SECRET_HEADERS.has(plain) || isSecretName(plain)) return REDACTED;
  const text = typeof value === 'string' ? value : String(value);
  if (URL_HEADERS.has(plain)) return capped(redactText(redactUrl(text)), HEADER_CHARS_MAX);
  return capped(redactText(text), HEADER_CHARS_MAX);
}

const ADDRESSES = /\b(?:https?|wss?|ftp):\/\/[^\s"'`<>\\)\]}]+/gi;
const SCHEMES = /\b(bearer|basic|digest|negotiate|token)(\s+)([a-z0-9+/=_.~-]{8,})/gi;
const JWTS = /\beyJ[a-zA-Z0-9_-]{6,}\.[a-zA-Z0-9_-]{6,}(?:\.[a-zA-Z0-9_-]*)?/g;
/** `password: "x"`, `"token":"x"`, `api_key=x`, `Set-Cookie: a=b; c=d`. */
const COOKIES = /\b(set-cookie2?|cookie2?|(?:proxy-)?authorization)(["']?\s*[:=]\s*)("[^"]*"|'[^']*'|[^\r\n]+)/gi;
const PAIRS = /([\w.-]{2,64})(["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&"'{}()[\]<>]+)/g;

/** Free text of pages: what looks like a credential goes, the rest stays. */
export function redactText(text: string): string {
  if (text.length < 4) return text;
  let clean = text;
  if (clean.includes('://')) clean = clean.replace(ADDRESSES, url => redactUrl(url));
  if (clean.includes('eyJ')) clean = clean.replace(JWTS, REDACTED);
  clean = clean.replace(SCHEMES, (_, scheme: string, blank: string) => `${scheme}${blank}${REDACTED}`);
  if (!/[:=]/.test(clean)) return clean;
  clean = clean.replace(COOKIES, (_, name: string, between: string) => `${name}${between}${REDACTED}`);
  return clean.replace(PAIRS, (whole, name: string, between: string, value: string) =>
    value !== REDACTED && isSecretName(name) && !ORDINARY_IN_TEXT.test(name) ? `${name}${between}${REDACTED}` : whole,
  );
}
