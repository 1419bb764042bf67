// HTTP handlers for signing in. The response that completes a sign-in sets the cookie.

import { SESSION_LIFE_MS } from '../../domain/people/human-sessions.ts';
import type { People } from '../../domain/people/open-people.ts';
import type { SignInStep } from '../../domain/people/sign-in.ts';
import type { Secret } from '../../kit/secret.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';
import type { SignInCookie } from './sign-in-cookie.ts';

export const signInHandlers = ({ signIn }: Pick<People, 'signIn'>, cookie: SignInCookie) => ({
  setUpAccount: async ({ body, source }: In<'setUpAccount'>): Promise<Answer> =>
    step(await signIn.setUp(body, source), cookie),

  register: async ({ body, source }: In<'register'>): Promise<Answer> =>
    step(await signIn.register(body, source), cookie),

  signInWithPassword: async ({ body, source }: In<'signInWithPassword'>): Promise<Answer> =>
    step(await signIn.withPassword(body, source), cookie),

  giveSecondFactor: async ({ body, source }: In<'giveSecondFactor'>): Promise<Answer> =>
    step(await signIn.withSecondFactor(body, source), cookie),

  requestEmailCode: async ({ body, source }: In<'requestEmailCode'>): Promise<Answer> =>
    answer(await signIn.requestEmailCode(body, source)),

  signInWithEmailCode: async ({ body, source }: In<'signInWithEmailCode'>): Promise<Answer> =>
    step(await signIn.withEmailCode(body, source), cookie),

  requestPasskeyChallenge: async ({ origin, source }: In<'requestPasskeyChallenge'>): Promise<Answer> =>
    answer(await signIn.requestPasskeyChallenge(origin, source)),

  signInWithPasskey: async ({ body, origin, source }: In<'signInWithPasskey'>): Promise<Answer> =>
    step(await signIn.withPasskey(body, origin, source), cookie),
});

const step = ({ result, cookie: secret }: SignInStep, cookie: SignInCookie): Answer =>
  answer(result, secret ? cookieHeader(cookie, secret) : {});

export const cookieHeader = (cookie: SignInCookie, secret: Secret | undefined): Record<string, string> => ({
  'set-cookie': cookie.write(secret?.reveal(), SESSION_LIFE_MS / 1000),
});
