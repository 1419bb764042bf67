// The input to the rules that decide which addresses may be reached: the ranges that the operator opened, and the
// addresses of this machine.
import type { Config } from '../config.ts';
import type { PolicyOptions } from '../engines/egress/policy.ts';
import { createThisMachine } from '../engines/egress/this-machine.ts';
import type { Clock } from '../kit/clock.ts';
import { listenersOf } from './listeners.ts';

export const operatorAddresses = (config: Config, clock: Clock): Pick<PolicyOptions, 'allow' | 'machine'> => ({
  allow: config.egressAllow,
  machine: createThisMachine({ listeners: listenersOf(config), clock, publicPort: publicPortOf(config) }),
});

/** The port of a TLS proxy in front of this server. Undefined if this server itself serves its public address. */
function publicPortOf({ publicUrl, tls }: Config): number | undefined {
  const { protocol, port } = new URL(publicUrl);
  return protocol === 'https:' && !tls ? Number(port || HTTPS_PORT) : undefined;
}

const HTTPS_PORT = 443;
