// Converts the text in the address bar to a complete URL.

const HOST_AND_PORT = /^(\[[0-9a-f:.]+\]|[^/?#:@\s]+):\d{1,5}(?=[/?#]|$)/i;
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;
const LOCAL_NAME = /^(localhost|[^/?#:@\s]+\.(localhost|local|internal|test)|[^/?#:@.\s]+)(?=[:/?#]|$)/i;
const IP_ADDRESS = /^(\[[0-9a-f:.]+\]|\d{1,3}(\.\d{1,3}){3})(?=[:/?#]|$)/i;

/** Without a scheme, uses http for local names, IP addresses and ports other than 443, and https for everything else. */
export function addressOf(text: string): string {
  const port = HOST_AND_PORT.exec(text)?.[0].replace(/^.*:/, '');
  if (port === undefined && SCHEME.test(text)) return text;
  const usesHttp = (port !== undefined && port !== '443') || LOCAL_NAME.test(text) || IP_ADDRESS.test(text);
  return `${usesHttp ? 'http' : 'https'}://${text}`;
}
