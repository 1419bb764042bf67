// HTTP handlers for the account of the person who is signed in.
import type { People } from '../../domain/people/open-people.ts';
import type { Secret } from '../../kit/secret.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse } from './http-response.ts';
import { cookieHeader } from './sign-in.ts';
import type { SignInCookie } from './sign-in-cookie.ts';

export const accountHandlers = ({ account, sessions }: Pick<People, 'account' | 'sessions'>, cookie: SignInCookie) => {
  /** Responds with the account, and sets the cookie that was issued after the new proof. */
  const respondWithCookie = async (caller: HandlerInput<'stepUp'>['caller'], secret: Secret): Promise<HttpResponse> =>
    jsonResponse(await account.read(caller), cookieHeader(cookie, secret));
  return {
    readAccount: async ({ caller }: HandlerInput<'readAccount'>): Promise<HttpResponse> =>
      jsonResponse(await account.read(caller)),

    changeAccount: async ({ caller, body }: HandlerInput<'changeAccount'>): Promise<HttpResponse> =>
      jsonResponse(await account.rename(caller, body.name)),

    signOut: async ({ caller }: HandlerInput<'signOut'>): Promise<HttpResponse> => {
      await sessions.end(caller, caller.via.id);
      return { headers: cookieHeader(cookie, undefined) };
    },

    listSignedInSessions: async ({ caller }: HandlerInput<'listSignedInSessions'>): Promise<HttpResponse> =>
      jsonResponse({ data: await sessions.list(caller) }),

    endSignedInSession: async ({ caller, params }: HandlerInput<'endSignedInSession'>): Promise<HttpResponse> => {
      await sessions.end(caller, params.id);
      return emptyResponse();
    },

    endOtherSessions: async ({ caller }: HandlerInput<'endOtherSessions'>): Promise<HttpResponse> => {
      await sessions.endAllOthers(caller);
      return emptyResponse();
    },

    stepUp: async ({ caller, body, origin }: HandlerInput<'stepUp'>): Promise<HttpResponse> =>
      respondWithCookie(caller, await account.stepUp(caller, body, origin)),

    requestStepUpChallenge: async ({ caller, origin }: HandlerInput<'requestStepUpChallenge'>): Promise<HttpResponse> =>
      jsonResponse(await account.requestStepUpChallenge(caller, origin)),

    changePassword: async ({ caller, body }: HandlerInput<'changePassword'>): Promise<HttpResponse> =>
      jsonResponse(await account.changePassword(caller, body.password)),

    requestPasskeyRegistration: async ({
      caller,
      origin,
    }: HandlerInput<'requestPasskeyRegistration'>): Promise<HttpResponse> =>
      jsonResponse(await account.beginPasskey(caller, origin)),

    addPasskey: async ({ caller, body, origin }: HandlerInput<'addPasskey'>): Promise<HttpResponse> =>
      respondWithCookie(caller, await account.addPasskey(caller, body, origin)),

    removePasskey: async ({ caller, params }: HandlerInput<'removePasskey'>): Promise<HttpResponse> => {
      await account.removePasskey(caller, params.id);
      return emptyResponse();
    },

    beginTotp: async ({ caller }: HandlerInput<'beginTotp'>): Promise<HttpResponse> =>
      jsonResponse(await account.beginTotp(caller)),

    confirmTotp: async ({ caller, body }: HandlerInput<'confirmTotp'>): Promise<HttpResponse> => {
      const { recoveryCodes, cookie: secret } = await account.confirmTotp(caller, body.code);
      return jsonResponse({ recoveryCodes }, secret ? cookieHeader(cookie, secret) : {});
    },

    removeTotp: async ({ caller }: HandlerInput<'removeTotp'>): Promise<HttpResponse> => {
      await account.removeTotp(caller);
      return emptyResponse();
    },

    renewRecoveryCodes: async ({ caller }: HandlerInput<'renewRecoveryCodes'>): Promise<HttpResponse> =>
      jsonResponse({ recoveryCodes: await account.renewRecoveryCodes(caller) }),

    requestEmailVerification: async ({ caller }: HandlerInput<'requestEmailVerification'>): Promise<HttpResponse> =>
      jsonResponse(await account.requestEmailVerification(caller)),

    verifyEmail: async ({ caller, body }: HandlerInput<'verifyEmail'>): Promise<HttpResponse> =>
      jsonResponse(await account.verifyEmail(caller, body)),
  };
};
