// E-mail addresses in the form in which they are compared: trimmed, in NFC and lower case. Provider-specific rules
// about dots and plus signs are not applied.
import { EMAIL_CHARACTERS_MAX } from '../../../contract/sign-in.ts';
import { invalidRequest } from '../faults.ts';

/** One `@`, a host name of one or more labels, and no character that ends or separates fields of a mail header. */
const EMAIL_PATTERN = /^[^\s@<>"(),:;\\\p{Cc}]{1,64}@[a-z0-9-]+(\.[a-z0-9-]+)*$/u;

export function cleanEmail(text: string): string {
  const email = text.trim().normalize('NFC').toLowerCase();
  if (EMAIL_PATTERN.test(email) && email.length <= EMAIL_CHARACTERS_MAX) return email;
  throw invalidRequest([
    { path: 'email', message: 'is not an e-mail address; expected an address such as ada@example.com' },
  ]);
}
