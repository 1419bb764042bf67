// Assembles the domain of people: signing in, human sessions, and the account of the person who is signed in.
import type { Passwords } from '../../engines/authenticators/passwords.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs } from '../../kit/clock.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Task } from '../../kit/task.ts';
import type { Audit } from '../audit/audit.ts';
import type { Identity } from '../identity/identity.ts';
import type { SharedTallies } from '../limits/shared-tally.ts';
import { EmailCodes, type Mail } from './email-codes.ts';
import { HumanSessions } from './human-sessions.ts';
import { OwnAccount } from './own-account.ts';
import { Passkeys, type PasskeysParts } from './passkeys.ts';
import { SecondFactors, type SecondFactorsParts } from './second-factors.ts';
import { type Registration, SignIn } from './sign-in.ts';

const FORGET_TICKETS_INTERVAL_MS = 3_600_000;
/** Expired tickets are kept for this long, because the limit on codes per hour counts them. */
const TICKETS_KEPT_MS = 24 * 3_600_000;

export interface PeopleDeps {
  readonly store: Pick<Store, 'accounts' | 'humanSessions' | 'passkeys' | 'signInTickets' | 'atomically'>;
  readonly identity: Pick<Identity, 'forget'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly tallies: Pick<SharedTallies, 'of'>;
  readonly registration: Registration;
  readonly mail: Mail;
  readonly passwords: Pick<Passwords, 'hash' | 'matches'>;
  readonly seal: SecondFactorsParts['seal'];
  readonly totp: SecondFactorsParts['totp'];
  readonly webauthn: PasskeysParts['webauthn'];
  readonly invitedEmail: (secret: string) => Promise<string | undefined>;
}

export interface People {
  readonly signIn: SignIn;
  readonly account: OwnAccount;
  readonly sessions: HumanSessions;
}

export function openPeople({ clock }: Runtime, deps: PeopleDeps): { service: People; tasks: readonly Task[] } {
  const { store, audit } = deps;
  const sessions = new HumanSessions({ store, clock, audit, onInvalidated: hash => deps.identity.forget(hash) });
  const parts = {
    ...{ store, clock, audit, sessions, passwords: deps.passwords, tallies: deps.tallies },
    emailCodes: new EmailCodes({ store, clock, mail: deps.mail }),
    secondFactors: new SecondFactors({ store, clock, seal: deps.seal, totp: deps.totp }),
    passkeys: new Passkeys({ store, clock, webauthn: deps.webauthn }),
  };
  const forgetTickets = async () => ({
    removed: await store.signInTickets.removeExpired(addMs(clock.now(), -TICKETS_KEPT_MS)),
  });
  return {
    service: {
      signIn: new SignIn({ ...parts, registration: deps.registration, invitedEmail: deps.invitedEmail }),
      account: new OwnAccount(parts),
      sessions,
    },
    tasks: [{ name: 'forget_tickets', everyMs: FORGET_TICKETS_INTERVAL_MS, run: forgetTickets }],
  };
}
