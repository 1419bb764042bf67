// Extracts the text of a PDF file that Chromium wrote. Decompresses its streams, and converts glyphs to text with
// the ToUnicode tables of the fonts.
import { inflateSync } from 'node:zlib';

const STREAM = /stream\r?\n/g;

function streamsOf(pdf: Buffer): readonly string[] {
  const all = pdf.toString('latin1');
  return [...all.matchAll(STREAM)].flatMap(({ index, 0: { length } }) => {
    if (all.slice(index - 3, index) === 'end') return [];
    const end = all.indexOf('endstream', index);
    const bytes = pdf.subarray(index + length, end);
    const isCompressed = all.slice(all.lastIndexOf('obj', index), index).includes('/FlateDecode');
    try {
      return [isCompressed ? inflateSync(bytes).toString('latin1') : bytes.toString('latin1')];
    } catch {
      return []; // the stream cannot be unpacked, so it contains no text
    }
  });
}

const charactersOf = (hex: string): string =>
  (hex.match(/.{4}/g) ?? []).map(unit => String.fromCharCode(Number.parseInt(unit, 16))).join('');

/** The text that each glyph of a font stands for. */
function glyphTextsIn(table: string): ReadonlyMap<number, string> {
  const textByGlyph = new Map<number, string>();
  for (const [, list = ''] of table.matchAll(/beginbfchar([\s\S]*?)endbfchar/g))
    for (const [, from = '', to = ''] of list.matchAll(/<([0-9A-Fa-f]+)>\s*<([0-9A-Fa-f]+)>/g))
      textByGlyph.set(Number.parseInt(from, 16), charactersOf(to));
  for (const [, list = ''] of table.matchAll(/beginbfrange([\s\S]*?)endbfrange/g))
    for (const [, from = '', to = '', first = ''] of list.matchAll(
      /<([0-9A-Fa-f]+)>\s*<([0-9A-Fa-f]+)>\s*<([0-9A-Fa-f]+)>/g,
    )) {
      const firstGlyph = Number.parseInt(from, 16);
      for (let glyph = firstGlyph; glyph <= Number.parseInt(to, 16); glyph += 1)
        textByGlyph.set(glyph, String.fromCharCode(Number.parseInt(first, 16) + glyph - firstGlyph));
    }
  return textByGlyph;
}

/**
 * Returns the unpacked streams, and the text decoded once with each font. The text has no spaces, because a page places
 * most letters individually.
 */
export function pdfText(pdf: Buffer): string {
  const streams = streamsOf(pdf);
  const fonts = streams.filter(stream => stream.includes('begincmap')).map(glyphTextsIn);
  const hexTexts = streams
    .filter(stream => /\bT[jJ]\b/.test(stream))
    .map(stream => [...stream.matchAll(/<([0-9A-Fa-f]+)>/g)].map(([, hex = '']) => hex).join(''));
  const texts = fonts.flatMap(font =>
    hexTexts.map(hex => (hex.match(/.{4}/g) ?? []).map(glyph => font.get(Number.parseInt(glyph, 16)) ?? '').join('')),
  );
  return [...streams, ...texts].join('\n');
}
