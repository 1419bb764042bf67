// HTTP handlers for device authorization.
import type { DeviceMethods } from '../../domain/device/device.ts';
import { peerOf } from '../../domain/device/from-session.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export const deviceHandlers = ({ starter, approval, collector, states }: DeviceMethods) => ({
  // RFC 8628, which uses forms, requires the status 200. A JSON request creates a resource, so the status is 201.
  startDeviceAuthorization: async ({
    body,
    source,
    isForm,
  }: HandlerInput<'startDeviceAuthorization'>): Promise<HttpResponse> => ({
    body: await starter.start(body, source),
    status: isForm ? 200 : 201,
  }),

  readDeviceRequest: async ({ caller, query }: HandlerInput<'readDeviceRequest'>): Promise<HttpResponse> =>
    jsonResponse(await approval.read(caller, query.user_code)),

  readDeviceState: async ({
    params,
    query,
    presented,
    source,
    signal,
  }: HandlerInput<'readDeviceState'>): Promise<HttpResponse> =>
    jsonResponse(await states.read(params.id, presented.authorization, query, source, signal)),

  decideDeviceAuthorization: async ({
    caller,
    body,
    presented,
  }: HandlerInput<'decideDeviceAuthorization'>): Promise<HttpResponse> =>
    jsonResponse(await approval.decide(caller, body, peerOf(presented))),

  collectDeviceToken: async ({ body, source }: HandlerInput<'collectDeviceToken'>): Promise<HttpResponse> =>
    jsonResponse(await collector.collect(body, source)),
});
