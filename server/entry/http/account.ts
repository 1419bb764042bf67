// HTTP handlers for the account of the person who is signed in.
import type { People } from '../../domain/people/open-people.ts';
import type { Secret } from '../../kit/secret.ts';
import { type Answer, answer, nothing } from './answer.ts';
import type { In } from './bind.ts';
import { cookieHeader } from './sign-in.ts';
import type { SignInCookie } from './sign-in-cookie.ts';

export const accountHandlers = ({ account, sessions }: Pick<People, 'account' | 'sessions'>, cookie: SignInCookie) => {
  /** Responds with the account and the cookie that was issued after the new proof. */
  const renewed = async (caller: In<'stepUp'>['caller'], secret: Secret): Promise<Answer> =>
    answer(await account.read(caller), cookieHeader(cookie, secret));
  return {
    readAccount: async ({ caller }: In<'readAccount'>): Promise<Answer> => answer(await account.read(caller)),

    changeAccount: async ({ caller, body }: In<'changeAccount'>): Promise<Answer> =>
      answer(await account.rename(caller, body.name)),

    signOut: async ({ caller }: In<'signOut'>): Promise<Answer> => {
      await sessions.end(caller, caller.via.id);
      return { headers: cookieHeader(cookie, undefined) };
    },

    listSignedInSessions: async ({ caller }: In<'listSignedInSessions'>): Promise<Answer> =>
      answer({ data: await sessions.list(caller) }),

    endSignedInSession: async ({ caller, params }: In<'endSignedInSession'>): Promise<Answer> => {
      await sessions.end(caller, params.id);
      return nothing();
    },

    endOtherSessions: async ({ caller }: In<'endOtherSessions'>): Promise<Answer> => {
      await sessions.endAllOthers(caller);
      return nothing();
    },

    stepUp: async ({ caller, body, origin }: In<'stepUp'>): Promise<Answer> =>
      renewed(caller, await account.stepUp(caller, body, origin)),

    requestStepUpChallenge: async ({ caller, origin }: In<'requestStepUpChallenge'>): Promise<Answer> =>
      answer(await account.requestStepUpChallenge(caller, origin)),

    changePassword: async ({ caller, body }: In<'changePassword'>): Promise<Answer> =>
      answer(await account.changePassword(caller, body.password)),

    requestPasskeyRegistration: async ({ caller, origin }: In<'requestPasskeyRegistration'>): Promise<Answer> =>
      answer(await account.beginPasskey(caller, origin)),

    addPasskey: async ({ caller, body, origin }: In<'addPasskey'>): Promise<Answer> =>
      renewed(caller, await account.addPasskey(caller, body, origin)),

    removePasskey: async ({ caller, params }: In<'removePasskey'>): Promise<Answer> => {
      await account.removePasskey(caller, params.id);
      return nothing();
    },

    beginTotp: async ({ caller }: In<'beginTotp'>): Promise<Answer> => answer(await account.beginTotp(caller)),

    confirmTotp: async ({ caller, body }: In<'confirmTotp'>): Promise<Answer> => {
      const { recoveryCodes, cookie: secret } = await account.confirmTotp(caller, body.code);
      return answer({ recoveryCodes }, secret ? cookieHeader(cookie, secret) : {});
    },

    removeTotp: async ({ caller }: In<'removeTotp'>): Promise<Answer> => {
      await account.removeTotp(caller);
      return nothing();
    },

    renewRecoveryCodes: async ({ caller }: In<'renewRecoveryCodes'>): Promise<Answer> =>
      answer({ recoveryCodes: await account.renewRecoveryCodes(caller) }),

    requestEmailVerification: async ({ caller }: In<'requestEmailVerification'>): Promise<Answer> =>
      answer(await account.requestEmailVerification(caller)),

    verifyEmail: async ({ caller, body }: In<'verifyEmail'>): Promise<Answer> =>
      answer(await account.verifyEmail(caller, body)),
  };
};
