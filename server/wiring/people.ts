// The wiring of people: their accounts, and how they sign in.

import type { Identity } from '../domain/identity/identity.ts';
import { openPeople as open, type PeopleDeps } from '../domain/people/open-people.ts';
import { newSeed, stepOf } from '../engines/authenticators/one-time-codes.ts';
import { readAuthentication, readRegistration } from '../engines/authenticators/passkey-response.ts';
import {
  authenticationChallenge,
  registrationChallenge,
  verifyAuthentication,
  verifyRegistration,
} from '../engines/authenticators/passkeys.ts';
import { Passwords } from '../engines/authenticators/passwords.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';
import { seedSeal } from './vault.ts';

export const WEBAUTHN = {
  registrationChallenge,
  verifyRegistration,
  authenticationChallenge,
  verifyAuthentication,
  readRegistration,
  readAuthentication,
} as const;

export const openPeople = (
  runtime: Runtime,
  { store, vault, audit, config, tallies }: Foundation,
  deps: { readonly identity: Identity } & Pick<PeopleDeps, 'mail' | 'invitedEmail'>,
) =>
  open(runtime, {
    ...deps,
    ...{ store, audit, tallies, registration: config.registration, webauthn: WEBAUTHN, totp: { newSeed, stepOf } },
    passwords: new Passwords(),
    seal: seedSeal(vault),
  });
