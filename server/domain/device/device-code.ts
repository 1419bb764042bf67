// Reads the device code that a request sends as its credential.
import { fault } from '../faults.ts';
import { recognizeSecret } from '../identity/credentials.ts';

const ADVICE = 'Send the header Authorization: Bearer DEVICE_CODE. A device code begins with bdc_.';
const EXPECTED_CREDENTIAL = { expected: 'device_code' } as const;

/**
 * Returns the hash of the device code in this header.
 * @throws Fault if the header is absent, or contains another credential.
 */
export function deviceCodeHashIn(authorization: string | undefined): Buffer {
  if (authorization === undefined)
    throw fault('missing_credentials', 'The request has no credential.', {
      advice: ADVICE,
      details: EXPECTED_CREDENTIAL,
    });
  const hash = recognizeSecret('device_code', /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '');
  if (!hash) throw invalidDeviceCode();
  return hash;
}

export const invalidDeviceCode = (): Error =>
  fault('invalid_credentials', 'The credential is not a valid device code.', {
    advice: ADVICE,
    details: EXPECTED_CREDENTIAL,
  });
