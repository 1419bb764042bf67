// Reads a JSON body: an empty one means {}, and nesting has an end, because later steps walk the value recursively.
import { invalidRequest } from '../../domain/faults.ts';

/** A JSON body of 1 MB is refused; this is the largest that is not. */
export const BODY_BYTES_MAX = 999_999;
const DEPTH_MAX = 32;

export function readJsonBody(text: string): unknown {
  if (text.trim() === '') return {};
  if (depthOf(text) > DEPTH_MAX)
    throw invalidRequest([{ path: '', message: `The body is nested more than ${DEPTH_MAX} levels deep` }]);
  try {
    return JSON.parse(text, refusePrototype);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw invalidRequest([{ path: '', message: `The body is not valid JSON: ${error.message}` }]);
  }
}

/** Deepest nesting of objects and arrays, read from the text without building anything. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (inString) {
      if (character === '\\') at += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{' || character === '[') deepest = Math.max(deepest, ++depth);
    else if (character === '}' || character === ']') depth -= 1;
  }
  return deepest;
}

function refusePrototype(key: string, value: unknown): unknown {
  if (key === '__proto__')
    throw invalidRequest([{ path: '__proto__', message: 'is not a name that a field can have' }]);
  return value;
}
