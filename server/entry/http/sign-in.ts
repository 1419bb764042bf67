// HTTP handlers for signing in. The response that completes a sign-in sets the cookie.

import { SESSION_LIFETIME_MAX_MS } from '../../domain/people/human-sessions.ts';
import type { People } from '../../domain/people/open-people.ts';
import type { SignInStep } from '../../domain/people/sign-in.ts';
import type { Secret } from '../../kit/secret.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';
import type { SignInCookie } from './sign-in-cookie.ts';

export const signInHandlers = ({ signIn }: Pick<People, 'signIn'>, cookie: SignInCookie) => ({
  setUpAccount: async ({ body, source }: HandlerInput<'setUpAccount'>): Promise<HttpResponse> =>
    stepResponse(await signIn.setUp(body, source), cookie),

  register: async ({ body, source }: HandlerInput<'register'>): Promise<HttpResponse> =>
    stepResponse(await signIn.register(body, source), cookie),

  signInWithPassword: async ({ body, source }: HandlerInput<'signInWithPassword'>): Promise<HttpResponse> =>
    stepResponse(await signIn.withPassword(body, source), cookie),

  giveSecondFactor: async ({ body, source }: HandlerInput<'giveSecondFactor'>): Promise<HttpResponse> =>
    stepResponse(await signIn.withSecondFactor(body, source), cookie),

  requestEmailCode: async ({ body, source }: HandlerInput<'requestEmailCode'>): Promise<HttpResponse> =>
    jsonResponse(await signIn.requestEmailCode(body, source)),

  signInWithEmailCode: async ({ body, source }: HandlerInput<'signInWithEmailCode'>): Promise<HttpResponse> =>
    stepResponse(await signIn.withEmailCode(body, source), cookie),

  requestPasskeyChallenge: async ({ origin, source }: HandlerInput<'requestPasskeyChallenge'>): Promise<HttpResponse> =>
    jsonResponse(await signIn.requestPasskeyChallenge(origin, source)),

  signInWithPasskey: async ({ body, origin, source }: HandlerInput<'signInWithPasskey'>): Promise<HttpResponse> =>
    stepResponse(await signIn.withPasskey(body, origin, source), cookie),
});

const stepResponse = ({ result, cookie: secret }: SignInStep, cookie: SignInCookie): HttpResponse =>
  jsonResponse(result, secret ? cookieHeader(cookie, secret) : {});

export const cookieHeader = (cookie: SignInCookie, secret: Secret | undefined): Record<string, string> => ({
  'set-cookie': cookie.write(secret?.reveal(), SESSION_LIFETIME_MAX_MS / 1000),
});
