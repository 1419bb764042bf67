// One-time codes of authenticator apps (TOTP, RFC 6238): SHA-1, six digits and 30 seconds, which every app supports.
import { Secret as Seed, TOTP } from 'otpauth';
import { Secret } from '../../kit/secret.ts';

const SEED_BYTES = 20;
/** Codes of the previous and the next step are accepted, because clocks differ. */
const WINDOW_STEPS = 1;
const PERIOD_SECONDS = 30;
const ISSUER = 'Berth';

export interface NewSeed {
  /** In base32. */
  readonly seed: Secret;
  /** Returns the `otpauth://` address for an account with this name. */
  uriFor(account: string): Secret;
}

export const newSeed = (): NewSeed => {
  const { base32 } = new Seed({ size: SEED_BYTES });
  return { seed: new Secret(base32), uriFor: account => new Secret(totpOf(base32, account).toString()) };
};

/** Returns the time step of the code. Undefined if the code is wrong. */
export function stepOf(seed: Secret, code: string, now: Date): number | undefined {
  const delta = totpOf(seed.reveal()).validate({ token: code, timestamp: now.getTime(), window: WINDOW_STEPS });
  return delta === null ? undefined : Math.floor(now.getTime() / 1000 / PERIOD_SECONDS) + delta;
}

/** The code at this time. Spaces in the seed and padding at its end are ignored. Throws if the seed is not base32. */
export const codeOf = (seed: Secret, now: Date): Secret =>
  new Secret(totpOf(seed.reveal().replaceAll(' ', '').replace(/=+$/, '')).generate({ timestamp: now.getTime() }));

const totpOf = (base32: string, label = ''): TOTP =>
  new TOTP({ issuer: ISSUER, label, secret: Seed.fromBase32(base32), period: PERIOD_SECONDS });
