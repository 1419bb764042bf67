// The header that names a file (RFC 6266): a plain name for those who read no other, and the whole one. Nothing in a name
// can break out of it.

export function contentDisposition(kind: 'attachment' | 'inline', name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  return `${kind}; filename="${plain}"; filename*=UTF-8''${encoded(name)}`;
}

/** RFC 5987: `encodeURIComponent` leaves some characters that the header may not have. */
const encoded = (name: string): string =>
  encodeURIComponent(name.toWellFormed()).replace(
    /[!'()*]/g,
    character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
