// Removes secrets from texts of others, in the encodings in which services echo them.

const STARS = '***';
/** A shorter text would occur by chance. */
const CHARACTERS_MIN = 4;

/** Returns a function that replaces each of the secrets by stars. */
export function withoutSecrets(secrets: readonly string[]): (text: string) => string {
  const forms = new Set(secrets.filter(({ length }) => length >= CHARACTERS_MIN).flatMap(formsOf));
  const longestFirst = [...forms].sort((a, b) => b.length - a.length);
  return text => longestFirst.reduce((cleaned, form) => cleaned.replaceAll(form, STARS), text);
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const quoted = JSON.stringify(secret).slice(1, -1);
  return [
    ...[secret, quoted, quoted.replaceAll('/', '\\/')],
    ...[encodeURIComponent(secret.toWellFormed()), encodeURIComponent(secret.toWellFormed()).replaceAll('%20', '+')],
    ...[secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')],
    ...[bytes.toString('hex'), bytes.toString('hex').toUpperCase()],
    ...base64Forms(bytes),
  ];
}

/** Base64 of the secret alone or inside a longer text: at each of three offsets, without the characters that neighbours share. */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap(before => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const inner = text.slice(before === 0 ? 0 : before + 1, bytes.length % 3 === (3 - before) % 3 ? undefined : -1);
    return inner.length < 8 ? [] : [inner, inner.replaceAll('+', '-').replaceAll('/', '_')];
  });
}
