// Parses a JSON body. An empty body means {}. The nesting depth is limited, because later steps are recursive.
import { invalidRequest } from '../../domain/faults.ts';

/** The maximum size of a body: one byte less than 1 MB. */
export const BODY_BYTES_MAX = 999_999;
const DEPTH_MAX = 32;
const [QUOTE, BACKSLASH, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [
  0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d,
] as const;

export function readJsonBody(text: string): unknown {
  if (text.trim() === '') return {};
  if (depthOf(text) > DEPTH_MAX)
    throw invalidRequest([{ path: '', message: `The body is nested more than ${DEPTH_MAX} levels deep` }]);
  const value = parseOrRefuse(text);
  // The name `__proto__` may be written with escapes. No reviver is used: it would be called for every value, which
  // takes ten times as long as parsing.
  if (/__proto__|\\u/.test(text)) refusePrototypes(value);
  return value;
}

function parseOrRefuse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidRequest([
      { path: '', message: `The body is not valid JSON: ${error instanceof Error ? error.message : ''}` },
    ]);
  }
}

/** The nesting depth of objects and arrays, counted in the text without parsing it. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (isInString) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) isInString = false;
    } else if (code === QUOTE) isInString = true;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) deepest = Math.max(deepest, ++depth);
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
  }
  return deepest;
}

/** Refuses members named `__proto__`. Recursion is safe here, because the depth has already been limited. */
function refusePrototypes(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Object.hasOwn(value, '__proto__'))
    throw invalidRequest([{ path: '__proto__', message: 'is not an allowed field name' }]);
  for (const inner of Object.values(value)) refusePrototypes(inner);
}
