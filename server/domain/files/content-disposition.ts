// The Content-Disposition header of a file (RFC 6266): an ASCII fallback name and the full name, both escaped.

export function contentDisposition(kind: 'attachment' | 'inline', name: string): string {
  const asciiName = name.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  return `${kind}; filename="${asciiName}"; filename*=UTF-8''${encodedName(name)}`;
}

/**
 * Encodes a name according to RFC 5987. Also escapes the characters that the header may not contain, although
 * `encodeURIComponent` does not escape them.
 */
const encodedName = (name: string): string =>
  encodeURIComponent(name.toWellFormed()).replace(
    /[!'()*]/g,
    character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
