// Sign-in with a browser: by password, passkey or a code by e-mail, with a second factor if the account has one. The
// response that completes a sign-in sets the cookie.
import { type Static, Type } from 'typebox';
import { Name } from './applications.ts';
import { AnyObject, Time, Uuid } from './common.ts';

/**
 * Authentication context (`acr`), weakest first: one factor, two factors, a passkey with user verification. Only the
 * last resists phishing; `phr` is the value that OpenID Connect registers for phishing-resistant authentication.
 */
export const ACRS = ['berth:1', 'berth:2', 'phr'] as const;
export type Acr = (typeof ACRS)[number];

/** Maximum age of the proof of identity that a step-up requires. */
export const STEP_UP_MAX_AGE_SECONDS = 300;

/** The possible first steps of a sign-in. */
export const SIGN_IN_METHODS = ['password', 'passkey', 'email_code'] as const;

export const PASSWORD_CHARACTERS_MIN = 12;
export const PASSWORD_CHARACTERS_MAX = 256;
export const EMAIL_CHARACTERS_MAX = 254;
export const CODE_LIFETIME_MINUTES = 10;

export const Email = (description: string) =>
  Type.String({ minLength: 3, maxLength: EMAIL_CHARACTERS_MAX, description });

/** The password of an existing account, to be checked. The minimum length applies only to new passwords. */
const Password = Type.String({ minLength: 1, maxLength: PASSWORD_CHARACTERS_MAX, description: 'The password.' });

export const NewPassword = Type.String({
  minLength: PASSWORD_CHARACTERS_MIN,
  maxLength: PASSWORD_CHARACTERS_MAX,
  description: `The new password: ${PASSWORD_CHARACTERS_MIN} to ${PASSWORD_CHARACTERS_MAX} characters, of any kind.`,
});

/** A code from the authenticator app, a code from an e-mail, or a recovery code. Spaces and dashes are ignored. */
export const Code = Type.String({
  minLength: 6,
  maxLength: 32,
  description: 'The code. Spaces and dashes are ignored.',
});

const Ticket = Uuid('The `ticket` of the previous response.');

const Secret = (description: string) => Type.String({ minLength: 1, maxLength: 128, description });

export const SECOND_FACTORS = ['totp', 'recovery_code'] as const;

export const SignInResult = Type.Object(
  {
    status: Type.Enum(['signed_in', 'second_factor_required'], {
      description: '`signed_in`: the cookie is set. `second_factor_required`: send a code with the ticket.',
    }),
    accountId: Type.Optional(Uuid('Id of the account, once signed in.')),
    ticket: Type.Optional(Uuid('Ticket for the second factor. Valid for ten minutes.')),
    methods: Type.Optional(
      Type.Array(Type.Enum([...SECOND_FACTORS]), { description: 'Second factors that the account has.' }),
    ),
  },
  { description: 'The progress of a sign-in.' },
);
export type SignInResult = Static<typeof SignInResult>;

export const SetUpAccount = Type.Object({
  token: Secret('The secret of a link that was printed by the first start or by the command `berth accounts link`.'),
  name: Name('Your name.'),
  email: Email('Your e-mail address. Compared without regard to case.'),
  password: NewPassword,
});
export type SetUpAccount = Static<typeof SetUpAccount>;

export const Register = Type.Object({
  name: Name('Your name.'),
  email: Email('Your e-mail address. Compared without regard to case.'),
  password: NewPassword,
  invitation: Type.Optional(Secret('The secret of an invitation link. Required unless registration is open.')),
});
export type Register = Static<typeof Register>;

export const SignInWithPassword = Type.Object({ email: Email('E-mail address of the account.'), password: Password });
export type SignInWithPassword = Static<typeof SignInWithPassword>;

export const GiveSecondFactor = Type.Object({
  ticket: Ticket,
  method: Type.Enum(['totp', 'recovery_code'], { description: 'The source of the code.' }),
  code: Code,
});
export type GiveSecondFactor = Static<typeof GiveSecondFactor>;

export const RequestEmailCode = Type.Object({ email: Email('E-mail address of the account.') });
export type RequestEmailCode = Static<typeof RequestEmailCode>;

export const EmailCodeSent = Type.Object(
  { ticket: Uuid('Ticket to send with the code.') },
  { description: 'The response is the same whether or not the account exists.' },
);
export type EmailCodeSent = Static<typeof EmailCodeSent>;

export const SignInWithEmailCode = Type.Object({ ticket: Ticket, code: Code });
export type SignInWithEmailCode = Static<typeof SignInWithEmailCode>;

export const PasskeyChallenge = Type.Object(
  {
    ticket: Uuid('Ticket to send with the response of the authenticator. Valid for five minutes.'),
    publicKey: AnyObject(
      'Options for `navigator.credentials`, in the form that `PublicKeyCredential.parse…OptionsFromJSON` takes.',
    ),
  },
  { description: 'A challenge for a passkey (WebAuthn).' },
);
export type PasskeyChallenge = Static<typeof PasskeyChallenge>;

export const PasskeyResponse = AnyObject('The response of the authenticator: `credential.toJSON()`.');

export const SignInWithPasskey = Type.Object({ ticket: Ticket, response: PasskeyResponse });
export type SignInWithPasskey = Static<typeof SignInWithPasskey>;

export const CurrentAccount = Type.Object(
  {
    id: Uuid('Id of the account.'),
    name: Type.String(),
    email: Type.Optional(Type.String({ description: 'E-mail address in lower case.' })),
    isOperator: Type.Optional(
      Type.Literal(true, {
        description:
          'Present for the account that was set up at the first start, which may read the e-mails in the outbox and the state of the host.',
      }),
    ),
    emailVerified: Type.Boolean({ description: 'Whether the address was verified with a code that was sent to it.' }),
    hasPassword: Type.Boolean(),
    totpEnabled: Type.Boolean({ description: 'Whether a sign-in requires a code from an authenticator app.' }),
    recoveryCodesLeft: Type.Integer({ minimum: 0 }),
    passkeys: Type.Array(
      Type.Object({
        id: Uuid('Id of the passkey.'),
        name: Type.String(),
        createdAt: Time('When the passkey was added.'),
        lastUsedAt: Type.Optional(Time('When the passkey was last used.')),
      }),
    ),
    createdAt: Time('When the account was created.'),
    session: Type.Optional(
      Type.Object(
        {
          id: Uuid('Id of this session.'),
          acr: Type.Enum([...ACRS], { description: 'How strongly you last proved your identity.' }),
          authTime: Time('When you last proved your identity.'),
          strongestAcr: Type.Enum([...ACRS], {
            description: 'The strongest proof of identity that the account is able to give.',
          }),
        },
        { description: 'The session of a person who signed in. Absent for tokens.' },
      ),
    ),
  },
  { description: 'The account of the caller.' },
);
export type CurrentAccount = Static<typeof CurrentAccount>;

export const ChangeAccount = Type.Object({ name: Name('Your name.') });
export type ChangeAccount = Static<typeof ChangeAccount>;

export const ChangePassword = Type.Object({ password: NewPassword });
export type ChangePassword = Static<typeof ChangePassword>;

export const PasskeyParams = Type.Object({ id: Uuid('Id of the passkey.') });

export const AddPasskey = Type.Object({
  ticket: Ticket,
  name: Name('A name by which you recognize the passkey.'),
  response: PasskeyResponse,
});
export type AddPasskey = Static<typeof AddPasskey>;

export const TotpSecret = Type.Object(
  {
    secret: Type.String({ description: 'The seed in base32, for manual entry.' }),
    uri: Type.String({ description: '`otpauth://` address, to be shown as a QR code.' }),
  },
  { description: 'The seed of one-time codes. It takes effect once a code generated from it has been entered.' },
);
export type TotpSecret = Static<typeof TotpSecret>;

export const ConfirmCode = Type.Object({ code: Code });
export type ConfirmCode = Static<typeof ConfirmCode>;

export const RecoveryCodes = Type.Object(
  {
    recoveryCodes: Type.Array(Type.String(), {
      description: 'Each code works once. The codes cannot be shown again: save them now.',
    }),
  },
  { description: 'Codes for use if the authenticator app is lost.' },
);
export type RecoveryCodes = Static<typeof RecoveryCodes>;

export const SignedInSession = Type.Object(
  {
    id: Uuid('Id of the session.'),
    isCurrent: Type.Boolean({ description: 'Whether this is the session in which the request was sent.' }),
    acr: Type.Enum([...ACRS]),
    createdAt: Time('When the person signed in.'),
    lastUsedAt: Type.Optional(Time('When the session was last used, to the minute.')),
    lastUsedIp: Type.Optional(Type.String({ description: 'IP address of the last use.' })),
    userAgent: Type.Optional(Type.String({ description: 'The `User-Agent` of the browser.' })),
    expiresAt: Time('When the session ends unless it is used again, at most seven days after the sign-in.'),
  },
  { description: 'A browser in which the account is signed in.' },
);
export type SignedInSession = Static<typeof SignedInSession>;

export const SignedInSessions = Type.Object({ data: Type.Array(SignedInSession, { description: 'Newest first.' }) });
export type SignedInSessions = Static<typeof SignedInSessions>;

export const SessionParams = Type.Object({ id: Uuid('Id of the session.') });

export const StepUp = Type.Object({
  method: Type.Enum(['password', 'totp', 'recovery_code', 'passkey'], {
    description: 'The method of the proof. `GET /v1/account` lists the methods of the account.',
  }),
  password: Type.Optional(Password),
  code: Type.Optional(Code),
  ticket: Type.Optional(Ticket),
  response: Type.Optional(PasskeyResponse),
});
export type StepUp = Static<typeof StepUp>;
