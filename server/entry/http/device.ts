// HTTP handlers for device authorization.
import type { DeviceVerbs } from '../../domain/device/device.ts';
import { peerOf } from '../../domain/device/from-session.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export const deviceHandlers = ({ starting, approval, collecting, states }: DeviceVerbs) => ({
  // RFC 8628 requires 200. For JSON requests, the authorization is a resource like any other, so the status is 201.
  startDeviceAuthorization: async ({ body, source, isForm }: In<'startDeviceAuthorization'>): Promise<Answer> => ({
    body: await starting.start(body, source),
    status: isForm ? 200 : 201,
  }),

  readDeviceRequest: async ({ caller, query }: In<'readDeviceRequest'>): Promise<Answer> =>
    answer(await approval.read(caller, query.user_code)),

  readDeviceState: async ({ params, query, presented, source, signal }: In<'readDeviceState'>): Promise<Answer> =>
    answer(await states.read(params.id, presented.authorization, query, source, signal)),

  decideDeviceAuthorization: async ({ caller, body, presented }: In<'decideDeviceAuthorization'>): Promise<Answer> =>
    answer(await approval.decide(caller, body, peerOf(presented))),

  collectDeviceToken: async ({ body, source }: In<'collectDeviceToken'>): Promise<Answer> =>
    answer(await collecting.collect(body, source)),
});
