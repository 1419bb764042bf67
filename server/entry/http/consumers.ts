// HTTP handlers for the commands of consumers.
import type { ConsumerParams } from '../../../contract/consumers.ts';
import type { ConsumerActions } from '../../domain/consumers/consumer-actions.ts';
import type { OpenedSession } from '../../domain/consumers/consumer-sessions.ts';
import type { HostedPage } from '../../domain/consumers/hosted.ts';
import type { ConsumerServices } from '../../domain/consumers/open-consumers.ts';
import type { NewCookie } from '../../domain/consumers/own-consumer.ts';
import { peerOf } from '../../domain/device/from-session.ts';
import { notFound } from '../../domain/faults.ts';
import type { HandlerInput } from './bind.ts';
import type { ConsumerCookie } from './consumer-cookie.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

const HOSTED_PROVIDER_ID = 'hosted';
const NO_CONTENT = 204;
const ACCEPTED = 202;

export interface ConsumerParts {
  readonly actions: Pick<ConsumerActions, 'list' | 'read' | 'challenge' | 'decide'>;
}

export const consumerHandlers = (
  { signIns, hostedSignIns, sessions, ownConsumer, profiles, upstream, linker }: ConsumerServices,
  { actions }: ConsumerParts,
  cookie: ConsumerCookie,
) => ({
  startConsumerSession: async ({
    params,
    body,
    origin,
    source,
  }: HandlerInput<'startConsumerSession'>): Promise<HttpResponse> =>
    jsonResponse(await signIns.start(params.appId, params.providerId, body, origin, source, upstream.start)),

  exchangeConsumerCode: async ({ params, body, source }: HandlerInput<'exchangeConsumerCode'>): Promise<HttpResponse> =>
    openedSessionResponse(await sessions.exchange(params.appId, params.providerId, body, source), params, cookie),

  refreshConsumerSession: async ({
    params,
    body,
    source,
  }: HandlerInput<'refreshConsumerSession'>): Promise<HttpResponse> =>
    openedSessionResponse(
      await sessions.refresh(params.appId, params.providerId, body.refreshToken, source),
      params,
      cookie,
    ),

  readConsumerSession: async ({ caller }: HandlerInput<'readConsumerSession'>): Promise<HttpResponse> =>
    jsonResponse(await sessions.read(caller)),

  endConsumerSession: async ({ caller, params }: HandlerInput<'endConsumerSession'>): Promise<HttpResponse> =>
    endedSessionResponse(await upstream.logoutUrl(await sessions.end(caller, 'this')), params, cookie),

  endConsumerSessions: async ({ caller, params }: HandlerInput<'endConsumerSessions'>): Promise<HttpResponse> =>
    endedSessionResponse(await upstream.logoutUrl(await sessions.end(caller, 'all')), params, cookie),

  stepUpConsumer: async ({ caller, params, body, origin }: HandlerInput<'stepUpConsumer'>): Promise<HttpResponse> => {
    const headers = cookieHeader(await ownConsumer.stepUp(caller, origin, body), params, cookie);
    const consumerSession = await sessions.reread(caller);
    return jsonResponse(consumerSession, headers);
  },

  describeHostedSignIn: async ({ params, body }: HandlerInput<'describeHostedSignIn'>): Promise<HttpResponse> =>
    jsonResponse(await hostedSignIns.describe(pageOf(params, body))),

  signInHostedWithPassword: async ({
    params,
    body,
    source,
  }: HandlerInput<'signInHostedWithPassword'>): Promise<HttpResponse> =>
    jsonResponse(await hostedSignIns.withPassword(pageOf(params, body), body, source)),

  sendHostedCode: async ({ params, body, source }: HandlerInput<'sendHostedCode'>): Promise<HttpResponse> =>
    jsonResponse(await hostedSignIns.sendCode(pageOf(params, body), body, source)),

  registerHosted: async ({ params, body, source }: HandlerInput<'registerHosted'>): Promise<HttpResponse> =>
    jsonResponse(await hostedSignIns.register(pageOf(params, body), body, source)),

  verifyHostedCode: async ({ params, body, source }: HandlerInput<'verifyHostedCode'>): Promise<HttpResponse> =>
    jsonResponse(await hostedSignIns.verify(pageOf(params, body), body, source)),

  requestHostedPasskey: async ({
    params,
    body,
    origin,
    source,
  }: HandlerInput<'requestHostedPasskey'>): Promise<HttpResponse> =>
    jsonResponse(await hostedSignIns.passkeyOptions(pageOf(params, body), origin, source)),

  signInHostedWithPasskey: async ({
    params,
    body,
    origin,
    source,
  }: HandlerInput<'signInHostedWithPasskey'>): Promise<HttpResponse> =>
    jsonResponse(await hostedSignIns.withPasskey(pageOf(params, body), body, origin, source)),

  readConsumerProfile: async ({ caller }: HandlerInput<'readConsumerProfile'>): Promise<HttpResponse> =>
    jsonResponse(await profiles.read(caller)),

  updateConsumerProfile: async ({ caller, body }: HandlerInput<'updateConsumerProfile'>): Promise<HttpResponse> =>
    jsonResponse(await profiles.update(caller, body)),

  deleteConsumerProfile: async ({ caller, params }: HandlerInput<'deleteConsumerProfile'>): Promise<HttpResponse> => {
    await profiles.delete(caller);
    return { status: ACCEPTED, headers: { 'set-cookie': cookie.write(params.appId, undefined, 0) } };
  },

  linkConsumerProfile: async ({ caller, body }: HandlerInput<'linkConsumerProfile'>): Promise<HttpResponse> =>
    jsonResponse(await linker.link(caller, body.accessToken)),

  listConsumerPasskeys: async ({ caller }: HandlerInput<'listConsumerPasskeys'>): Promise<HttpResponse> =>
    jsonResponse(await ownConsumer.listPasskeys(caller)),

  requestConsumerPasskey: async ({ caller, origin }: HandlerInput<'requestConsumerPasskey'>): Promise<HttpResponse> =>
    jsonResponse(await ownConsumer.beginAddingPasskey(caller, origin)),

  addConsumerPasskey: async ({
    caller,
    params,
    body,
    origin,
  }: HandlerInput<'addConsumerPasskey'>): Promise<HttpResponse> => {
    const headers = cookieHeader(await ownConsumer.addPasskey(caller, origin, body), params, cookie);
    return jsonResponse(await ownConsumer.listPasskeys(caller), headers);
  },

  removeConsumerPasskey: async ({ caller, body }: HandlerInput<'removeConsumerPasskey'>): Promise<HttpResponse> => {
    await ownConsumer.removePasskey(caller, body.id);
    return jsonResponse(await ownConsumer.listPasskeys(caller));
  },

  requestConsumerChallenge: async ({
    caller,
    origin,
  }: HandlerInput<'requestConsumerChallenge'>): Promise<HttpResponse> =>
    jsonResponse(await ownConsumer.challenge(caller, origin)),

  listConsumerActions: async ({ caller, body }: HandlerInput<'listConsumerActions'>): Promise<HttpResponse> =>
    jsonResponse(await actions.list(caller, body)),

  readConsumerAction: async ({ caller, body }: HandlerInput<'readConsumerAction'>): Promise<HttpResponse> =>
    jsonResponse(await actions.read(caller, body.jobId)),

  challengeConsumerAction: async ({
    caller,
    body,
    origin,
  }: HandlerInput<'challengeConsumerAction'>): Promise<HttpResponse> =>
    jsonResponse(await actions.challenge(caller, body.jobId, origin)),

  approveConsumerAction: async ({
    caller,
    body,
    origin,
    presented,
  }: HandlerInput<'approveConsumerAction'>): Promise<HttpResponse> => {
    const { jobId, ...decisionFields } = body;
    const sender = { origin, peer: peerOf(presented) };
    return jsonResponse(await actions.decide(caller, jobId, { decision: 'approve', ...decisionFields }, sender));
  },

  refuseConsumerAction: async ({
    caller,
    body,
    origin,
    presented,
  }: HandlerInput<'refuseConsumerAction'>): Promise<HttpResponse> => {
    const { jobId, ...decisionFields } = body;
    const sender = { origin, peer: peerOf(presented) };
    return jsonResponse(await actions.decide(caller, jobId, { decision: 'refuse', ...decisionFields }, sender));
  },
});

/** Only the provider `hosted` has a sign-in page. */
function pageOf({ appId, providerId }: ConsumerParams, { signIn }: { readonly signIn: string }): HostedPage {
  if (providerId !== HOSTED_PROVIDER_ID) throw notFound('Sign-in', signIn);
  return { appId, signIn };
}

const openedSessionResponse = (
  { tokens, cookie: newCookie }: OpenedSession,
  params: ConsumerParams,
  cookie: ConsumerCookie,
): HttpResponse => jsonResponse(tokens, newCookie ? cookieHeader(newCookie, params, cookie) : {});

const cookieHeader = ({ secret, seconds }: NewCookie, { appId }: ConsumerParams, cookie: ConsumerCookie) => ({
  'set-cookie': cookie.write(appId, secret.reveal(), seconds),
});

function endedSessionResponse(
  logoutUrl: string | undefined,
  { appId }: ConsumerParams,
  cookie: ConsumerCookie,
): HttpResponse {
  const headers = { 'set-cookie': cookie.write(appId, undefined, 0) };
  return logoutUrl === undefined ? { status: NO_CONTENT, headers } : jsonResponse({ logoutUrl }, headers);
}
