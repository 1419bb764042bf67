// Reads the form bodies of the OAuth routes. A parameter may appear at most once, and an empty parameter counts as
// absent (RFC 6749, 3.1).
import { fault, invalidRequest } from '../../domain/faults.ts';

const FORM_BYTES_MAX = 8 * 1024;
const PARAMETERS_MAX = 32;

export const FORM_TYPE = 'application/x-www-form-urlencoded';

export const isFormType = (type: string | undefined): boolean =>
  type !== undefined && type.split(';', 1)[0]?.trim().toLowerCase() === FORM_TYPE;

export function readFormBody(text: string): Readonly<Record<string, string>> {
  if (Buffer.byteLength(text) > FORM_BYTES_MAX)
    throw fault('payload_too_large', `The form is too large: at most ${FORM_BYTES_MAX} bytes are accepted.`, {
      advice: 'Send a smaller body.',
      details: { limit: FORM_BYTES_MAX },
    });
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (values.has(name)) throw invalidRequest([{ path: name, message: 'occurs more than once; send it only once' }]);
    if (name === '__proto__') throw invalidRequest([{ path: name, message: 'is not an allowed field name' }]);
    if (values.size >= PARAMETERS_MAX)
      throw invalidRequest([{ path: '', message: `The form has more than ${PARAMETERS_MAX} parameters` }]);
    values.set(name, value);
  }
  return Object.fromEntries([...values].filter(([, value]) => value !== ''));
}
