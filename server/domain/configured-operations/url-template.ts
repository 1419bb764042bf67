// URL templates. Variables can appear only in the path and the query, and their values are percent-encoded, so that an
// input can choose neither the host nor another path. Pure.

const VARIABLE_PATTERN = /\{([A-Za-z_][A-Za-z0-9_]{0,63})\}/g;
/** Scheme, authority, path, query. A fragment is never sent. */
const URL_PATTERN = /^(https?:\/\/)([^/?#{}\s\\@]+)(\/[^?#]*)?(\?[^#]*)?$/i;
const VISIBLE_ASCII_PATTERN = /^[\u0021-\u007e]+$/;
const URL_CHARACTERS_MAX = 2048;

export interface UrlTemplate {
  /** Host in the normal form of the URL standard, followed by the port unless it is the standard port. */
  readonly host: string;
  readonly isEncrypted: boolean;
  readonly pathVariables: readonly string[];
  readonly queryVariables: readonly string[];
}

/** Returns the parts of the template. If the template is not valid, returns a description of the problem. */
export function readTemplate(template: string): UrlTemplate | string {
  if (!VISIBLE_ASCII_PATTERN.test(template)) return 'contains a character that must be percent-encoded';
  const [, scheme, authority, path = '/', query = ''] = URL_PATTERN.exec(template) ?? [];
  if (scheme === undefined || authority === undefined)
    return 'is not a URL such as https://api.example/orders/{orderId}; variables are allowed only in the path and the query, and user names and fragments are not allowed';
  const url = URL.parse(`${scheme}${authority}`);
  if (!url || url.hostname === '') return 'has an invalid host';
  if (/[{}]/.test(`${path}${query}`.replace(VARIABLE_PATTERN, '')))
    return 'has a brace that is not part of a variable such as {orderId}';
  if (unchangedPathOf(path.replace(VARIABLE_PATTERN, 'x')) === undefined)
    return 'has a path that contains . or .. as a segment, or a character that must be percent-encoded';
  return {
    host: url.host,
    isEncrypted: url.protocol === 'https:',
    pathVariables: variableNamesIn(path),
    queryVariables: variableNamesIn(query),
  };
}

const variableNamesIn = (text: string): string[] => [...text.matchAll(VARIABLE_PATTERN)].map(([, name = '']) => name);

/** Returns the path, or undefined if URL parsing would change it. */
function unchangedPathOf(path: string): string | undefined {
  const url = URL.parse(`https://host.invalid${path}`);
  return url?.pathname === path && url.hostname === 'host.invalid' ? path : undefined;
}

export type ExpansionResult = { readonly url: string } | { readonly variable?: string; readonly problem: string };

/** Expands the template. `textOf` returns the value of a variable. `query` contains additional query parameters. */
export function expand(
  template: string,
  textOf: (name: string) => string | undefined,
  query: ReadonlyArray<readonly [name: string, value: string]>,
): ExpansionResult {
  const [, scheme = '', authority = '', path = '/', templateQuery = ''] = URL_PATTERN.exec(template) ?? [];
  const missingName = variableNamesIn(path + templateQuery).find(name => textOf(name) === undefined);
  if (missingName !== undefined) return { variable: missingName, problem: 'is required for the URL' };
  const emptyName = variableNamesIn(path).find(name => textOf(name) === '');
  if (emptyName !== undefined)
    return { variable: emptyName, problem: 'must not be empty, because it is part of the path' };
  const fillIn = (text: string): string =>
    text.replace(VARIABLE_PATTERN, (_, name: string) => percentEncode(textOf(name) ?? ''));
  const wholePath = fillIn(path);
  if (unchangedPathOf(wholePath) === undefined)
    return { problem: 'contains a value that would change the path of the URL' };
  const addedQuery = query.map(([name, value]) => `${percentEncode(name)}=${percentEncode(value)}`).join('&');
  const wholeQuery = [fillIn(templateQuery).slice(1), addedQuery].filter(part => part !== '').join('&');
  const url = `${scheme}${authority}${wholePath}${wholeQuery === '' ? '' : `?${wholeQuery}`}`;
  return url.length > URL_CHARACTERS_MAX
    ? { problem: `makes the URL longer than ${URL_CHARACTERS_MAX} characters` }
    : { url };
}

/** Percent-encodes all but the unreserved characters of RFC 3986. */
const percentEncode = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    one => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );
