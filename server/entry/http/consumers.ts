// HTTP handlers for the commands of consumers.
import type { ConsumerParams } from '../../../contract/consumers.ts';
import type { ConsumerActions } from '../../domain/consumers/consumer-actions.ts';
import type { Opened } from '../../domain/consumers/consumer-sessions.ts';
import type { Page } from '../../domain/consumers/hosted.ts';
import type { ConsumerServices } from '../../domain/consumers/open-consumers.ts';
import type { NewCookie } from '../../domain/consumers/own-consumer.ts';
import { peerOf } from '../../domain/device/from-session.ts';
import { notFound } from '../../domain/faults.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';
import type { ConsumerCookie } from './consumer-cookie.ts';

const HOSTED = 'hosted';
const ENDED = 204;
const ACCEPTED = 202;

export interface ConsumerParts {
  readonly actions: Pick<ConsumerActions, 'list' | 'read' | 'challenge' | 'decide'>;
}

export const consumerHandlers = (
  { signIns, hosted, sessions, own, profiles, upstream, linking }: ConsumerServices,
  { actions }: ConsumerParts,
  cookie: ConsumerCookie,
) => ({
  startConsumerSession: async ({ params, body, origin, source }: In<'startConsumerSession'>): Promise<Answer> =>
    answer(await signIns.start(params.appId, params.providerId, body, origin, source, upstream.start)),

  exchangeConsumerCode: async ({ params, body, source }: In<'exchangeConsumerCode'>): Promise<Answer> =>
    opened(await sessions.exchange(params.appId, params.providerId, body, source), params, cookie),

  refreshConsumerSession: async ({ params, body, source }: In<'refreshConsumerSession'>): Promise<Answer> =>
    opened(await sessions.refresh(params.appId, params.providerId, body.refreshToken, source), params, cookie),

  readConsumerSession: async ({ caller }: In<'readConsumerSession'>): Promise<Answer> =>
    answer(await sessions.read(caller)),

  endConsumerSession: async ({ caller, params }: In<'endConsumerSession'>): Promise<Answer> =>
    ended(await upstream.logoutUrl(await sessions.end(caller, 'this')), params, cookie),

  endConsumerSessions: async ({ caller, params }: In<'endConsumerSessions'>): Promise<Answer> =>
    ended(await upstream.logoutUrl(await sessions.end(caller, 'all')), params, cookie),

  stepUpConsumer: async ({ caller, params, body, origin }: In<'stepUpConsumer'>): Promise<Answer> => {
    const headers = withCookie(await own.stepUp(caller, origin, body), params, cookie);
    const now = await sessions.reread(caller);
    return answer(now, headers);
  },

  describeHostedSignIn: async ({ params, body }: In<'describeHostedSignIn'>): Promise<Answer> =>
    answer(await hosted.describe(pageOf(params, body))),

  signInHostedWithPassword: async ({ params, body, source }: In<'signInHostedWithPassword'>): Promise<Answer> =>
    answer(await hosted.withPassword(pageOf(params, body), body, source)),

  sendHostedCode: async ({ params, body, source }: In<'sendHostedCode'>): Promise<Answer> =>
    answer(await hosted.sendCode(pageOf(params, body), body, source)),

  registerHosted: async ({ params, body, source }: In<'registerHosted'>): Promise<Answer> =>
    answer(await hosted.register(pageOf(params, body), body, source)),

  verifyHostedCode: async ({ params, body, source }: In<'verifyHostedCode'>): Promise<Answer> =>
    answer(await hosted.verify(pageOf(params, body), body, source)),

  requestHostedPasskey: async ({ params, body, origin, source }: In<'requestHostedPasskey'>): Promise<Answer> =>
    answer(await hosted.passkeyOptions(pageOf(params, body), origin, source)),

  signInHostedWithPasskey: async ({ params, body, origin, source }: In<'signInHostedWithPasskey'>): Promise<Answer> =>
    answer(await hosted.withPasskey(pageOf(params, body), body, origin, source)),

  readConsumerProfile: async ({ caller }: In<'readConsumerProfile'>): Promise<Answer> =>
    answer(await profiles.read(caller)),

  updateConsumerProfile: async ({ caller, body }: In<'updateConsumerProfile'>): Promise<Answer> =>
    answer(await profiles.update(caller, body)),

  deleteConsumerProfile: async ({ caller, params }: In<'deleteConsumerProfile'>): Promise<Answer> => {
    await profiles.delete(caller);
    return { status: ACCEPTED, headers: { 'set-cookie': cookie.write(params.appId, undefined, 0) } };
  },

  linkConsumerProfile: async ({ caller, body }: In<'linkConsumerProfile'>): Promise<Answer> =>
    answer(await linking.link(caller, body.accessToken)),

  listConsumerPasskeys: async ({ caller }: In<'listConsumerPasskeys'>): Promise<Answer> =>
    answer(await own.listPasskeys(caller)),

  requestConsumerPasskey: async ({ caller, origin }: In<'requestConsumerPasskey'>): Promise<Answer> =>
    answer(await own.beginAddingPasskey(caller, origin)),

  addConsumerPasskey: async ({ caller, params, body, origin }: In<'addConsumerPasskey'>): Promise<Answer> => {
    const headers = withCookie(await own.addPasskey(caller, origin, body), params, cookie);
    return answer(await own.listPasskeys(caller), headers);
  },

  removeConsumerPasskey: async ({ caller, body }: In<'removeConsumerPasskey'>): Promise<Answer> => {
    await own.removePasskey(caller, body.id);
    return answer(await own.listPasskeys(caller));
  },

  requestConsumerChallenge: async ({ caller, origin }: In<'requestConsumerChallenge'>): Promise<Answer> =>
    answer(await own.challenge(caller, origin)),

  listConsumerActions: async ({ caller, body }: In<'listConsumerActions'>): Promise<Answer> =>
    answer(await actions.list(caller, body)),

  readConsumerAction: async ({ caller, body }: In<'readConsumerAction'>): Promise<Answer> =>
    answer(await actions.read(caller, body.jobId)),

  challengeConsumerAction: async ({ caller, body, origin }: In<'challengeConsumerAction'>): Promise<Answer> =>
    answer(await actions.challenge(caller, body.jobId, origin)),

  approveConsumerAction: async ({ caller, body, origin, presented }: In<'approveConsumerAction'>): Promise<Answer> => {
    const { jobId, ...given } = body;
    const sender = { origin, peer: peerOf(presented) };
    return answer(await actions.decide(caller, jobId, { decision: 'approve', ...given }, sender));
  },

  refuseConsumerAction: async ({ caller, body, origin, presented }: In<'refuseConsumerAction'>): Promise<Answer> => {
    const { jobId, ...given } = body;
    const sender = { origin, peer: peerOf(presented) };
    return answer(await actions.decide(caller, jobId, { decision: 'refuse', ...given }, sender));
  },
});

/** Only the provider `hosted` has a sign-in page. */
function pageOf({ appId, providerId }: ConsumerParams, { signIn }: { readonly signIn: string }): Page {
  if (providerId !== HOSTED) throw notFound('Sign-in', signIn);
  return { appId, signIn };
}

const opened = ({ tokens, cookie: given }: Opened, params: ConsumerParams, cookie: ConsumerCookie): Answer =>
  answer(tokens, given ? withCookie(given, params, cookie) : {});

const withCookie = ({ secret, seconds }: NewCookie, { appId }: ConsumerParams, cookie: ConsumerCookie) => ({
  'set-cookie': cookie.write(appId, secret.reveal(), seconds),
});

function ended(logoutUrl: string | undefined, { appId }: ConsumerParams, cookie: ConsumerCookie): Answer {
  const headers = { 'set-cookie': cookie.write(appId, undefined, 0) };
  return logoutUrl === undefined ? { status: ENDED, headers } : answer({ logoutUrl }, headers);
}
