// The wiring of consumers: passwords, passkeys, mail, and the key that seals what is theirs.
import { openConsumers as open } from '../domain/consumers/open-consumers.ts';
import type { Identity } from '../domain/identity/identity.ts';
import type { Mail } from '../domain/people/email-codes.ts';
import { Passwords } from '../engines/authenticators/passwords.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';
import { WEBAUTHN } from './people.ts';

export const openConsumers = (
  runtime: Runtime,
  { store, vault, audit, config }: Foundation,
  deps: { readonly identity: Identity; readonly mail: Mail },
) =>
  open(runtime, {
    ...deps,
    ...{ store, audit, webauthn: WEBAUTHN, publicUrl: config.publicUrl },
    passwords: new Passwords(),
    destroyKey: consumer => vault.destroy(consumer),
  });
