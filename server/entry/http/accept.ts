// Content negotiation for a download: its metadata as JSON, or its bytes (RFC 9110, 12.5.1).

const JSON_TYPE = 'application/json';
const BYTES_TYPE = 'application/octet-stream';

/**
 * Returns the form in which the caller wants the download. Undefined if neither is acceptable. JSON if both are equally
 * acceptable or there is no header, because bytes must be requested explicitly.
 */
export function preferredForm(accept: string | undefined): 'json' | 'bytes' | undefined {
  if (accept === undefined || accept.trim() === '') return 'json';
  const ranges = accept.split(',').map(readRange);
  const jsonQuality = quality(ranges, [JSON_TYPE, 'application/*', '*/*']);
  const bytesQuality = quality(ranges, [BYTES_TYPE, 'application/*', '*/*']);
  if (bytesQuality > jsonQuality) return 'bytes';
  return jsonQuality > 0 ? 'json' : undefined;
}

interface MediaRange {
  readonly type: string;
  readonly quality: number;
}

function readRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map(part => part.trim().toLowerCase());
  const weight = parameters.map(parameter => /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.exec(parameter)?.[1]).find(Boolean);
  return { type, quality: weight === undefined ? 1 : Number(weight) };
}

/** Returns the quality of the most specific range that matches. */
function quality(ranges: readonly MediaRange[], names: readonly string[]): number {
  for (const name of names) {
    const range = ranges.find(({ type }) => type === name);
    if (range) return range.quality;
  }
  return 0;
}
