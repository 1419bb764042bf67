// JSON Pointers (RFC 6901) into the input of an operation. Pure.
import { isObject, type Json } from '../../kit/json.ts';

/**
 * An empty pointer and `/` both refer to the whole value. In RFC 6901, `/` would refer to the member with the empty
 * name.
 */
const isRootPointer = (pointer: string): boolean => pointer === '' || pointer === '/';

export const isPointer = (text: string): boolean =>
  isRootPointer(text) || (text.startsWith('/') && !/~(?![01])/.test(text) && !text.includes('\0'));

/** Returns the unescaped reference tokens of the pointer in order: member names and array indexes. */
export const referenceTokensOf = (pointer: string): readonly string[] =>
  isRootPointer(pointer)
    ? []
    : pointer
        .slice(1)
        .split('/')
        .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'));

/** Returns the value at the pointer. Undefined if there is no such value. */
export function valueAt(value: Json, pointer: string): Json | undefined {
  let current: Json | undefined = value;
  for (const step of referenceTokensOf(pointer)) current = memberOf(current, step);
  return current;
}

function memberOf(value: Json | undefined, name: string): Json | undefined {
  if (Array.isArray(value)) return /^(0|[1-9]\d{0,6})$/.test(name) ? value[Number(name)] : undefined;
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
