// The wiring of device authorization: the check for requests from session browsers, and the audit log.
import { openDevice as open } from '../domain/device/device.ts';
import { createIsFromSession } from '../domain/device/from-session.ts';
import type { Identity } from '../domain/identity/identity.ts';
import { machineAddressMatcher } from '../engines/egress/this-machine.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

export function openDevice({ clock }: Runtime, foundation: Foundation, identity: Identity) {
  const { store, secret, config, outboundEndpoints, audit, tallies } = foundation;
  const isThisMachine = machineAddressMatcher(clock);
  const hasOutgoingConnection = (address: string, port: number): boolean => outboundEndpoints.has(address, port);
  return open({
    ...{ store, clock, secret, audit, tallies, publicUrl: config.publicUrl },
    applications: identity.applications,
    forget: hash => identity.forget(hash),
    isFromSession: createIsFromSession({ hasOutgoingConnection, isThisMachine }),
  });
}
