// Reads the fields of a browser's `credential.toJSON()`. Accepts only non-empty strings of limited length, and drops all
// other fields.
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { isObject } from '../../kit/json.ts';

const TEXT_CHARACTERS_MAX = 16 * 1024;
const TRANSPORTS = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'] as const;

/** Reads a registration. Returns undefined for any other value. */
export function readRegistration(json: unknown): RegistrationResponseJSON | undefined {
  const credential = readCredential(json);
  const { clientDataJSON, attestationObject, transports } = Object(credential?.response);
  if (!credential || !isText(clientDataJSON) || !isText(attestationObject)) return undefined;
  const { id } = credential;
  const knownTransports = Array.isArray(transports) ? TRANSPORTS.filter(name => transports.includes(name)) : [];
  return {
    ...{ id, rawId: id, type: 'public-key', clientExtensionResults: {} },
    response: { clientDataJSON, attestationObject, transports: knownTransports },
  };
}

/** Reads a passkey's authentication response. Returns undefined if the value is not one. */
export function readAuthentication(json: unknown): AuthenticationResponseJSON | undefined {
  const credential = readCredential(json);
  const { clientDataJSON, authenticatorData, signature, userHandle } = Object(credential?.response);
  if (!credential || !isText(clientDataJSON) || !isText(authenticatorData) || !isText(signature)) return undefined;
  const { id } = credential;
  return {
    ...{ id, rawId: id, type: 'public-key', clientExtensionResults: {} },
    response: { clientDataJSON, authenticatorData, signature, ...(isText(userHandle) ? { userHandle } : {}) },
  };
}

function readCredential(json: unknown): { readonly id: string; readonly response: object } | undefined {
  if (!isObject(json)) return undefined;
  const { id, type, response } = json;
  return isText(id) && type === 'public-key' && isObject(response) ? { id, response } : undefined;
}

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= TEXT_CHARACTERS_MAX;
