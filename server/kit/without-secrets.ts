// Removes secrets from text that a service or page wrote. Recognizes each secret in every encoding in which the text
// may contain it.

export const STARS = '***';
/** Shorter secrets are ignored, because the same characters often occur in text by chance. */
const CHARACTERS_MIN = 4;

/**
 * Returns a function that replaces each of the secrets with stars. With `isCut`, the text may end inside a secret. The
 * function then also removes an end of the text that could be the beginning of a secret.
 */
export function secretRedactor(secrets: readonly string[]): (text: string, isCut?: boolean) => string {
  const longestFirst = formsOfAll(secrets);
  return (text, isCut = false) => {
    const cleaned = longestFirst.reduce((remaining, form) => remaining.replaceAll(form, STARS), text);
    return isCut ? longestFirst.reduce(withoutCutForm, cleaned) : cleaned;
  };
}

/** The secrets in all their encodings, the longest first. */
export function formsOfAll(secrets: readonly string[]): readonly string[] {
  const forms = new Set(secrets.filter(({ length }) => length >= CHARACTERS_MIN).flatMap(formsOf));
  return [...forms].sort((a, b) => b.length - a.length);
}

function withoutCutForm(text: string, form: string): string {
  for (let length = Math.min(form.length - 1, text.length); length > 0; length--)
    if (text.endsWith(form.slice(0, length))) return text.slice(0, -length);
  return text;
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const jsonEscaped = JSON.stringify(secret).slice(1, -1);
  const uriEncoded = encodeURIComponent(secret.toWellFormed());
  const formEncoded = new URLSearchParams([['', secret.toWellFormed()]]).toString().slice(1);
  return [
    ...[secret, jsonEscaped, jsonEscaped.replaceAll('/', '\\/'), JSON.stringify(jsonEscaped).slice(1, -1)],
    ...[
      uriEncoded,
      uriEncoded.replaceAll('%20', '+'),
      formEncoded,
      encodeURI(secret.toWellFormed()),
      encodeURIComponent(uriEncoded),
    ],
    ...[uriEncoded, formEncoded].map(text => text.replace(/%[0-9A-F]{2}/g, sign => sign.toLowerCase())),
    ...[secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')].flatMap(markup => [
      ...[markup, markup.replaceAll('"', '&quot;'), markup.replaceAll('"', '&quot;').replaceAll("'", '&#39;')],
    ]),
    ...[bytes.toString('hex'), bytes.toString('hex').toUpperCase()],
    ...base64Forms(bytes),
  ];
}

/**
 * Returns the Base64 forms of the secret, whether it is encoded alone or as part of longer data. There is one form for
 * each of the three offsets in a Base64 group, without the characters that also encode neighboring bytes.
 */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap(offset => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const inner = text.slice(offset === 0 ? 0 : offset + 1, bytes.length % 3 === (3 - offset) % 3 ? undefined : -1);
    if (inner.length < 8) return [];
    const urlEncoded = encodeURIComponent(inner);
    return [
      inner,
      inner.replaceAll('+', '-').replaceAll('/', '_'),
      urlEncoded,
      urlEncoded.replaceAll('%2B', '%2b').replaceAll('%2F', '%2f'),
    ];
  });
}
