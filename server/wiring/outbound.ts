// The wiring of requests to user-supplied addresses. They follow the same rules as sessions that have no policy of
// their own.
import type { Config } from '../config.ts';
import { OutboundCalls } from '../engines/egress/outbound-calls/outbound-calls.ts';
import { createResolver } from '../engines/egress/resolve.ts';
import { addressRules } from '../engines/egress/rules.ts';
import type { Clock } from '../kit/clock.ts';
import { badValue } from '../kit/environment.ts';
import { operatorAddresses } from './operator-addresses.ts';
import { readOperatorFile } from './operator-file.ts';

/**
 * All addresses of a host name are checked, so the server waits longer for the second address family than a browser
 * would.
 */
const TIMEOUTS = { otherFamilyMs: 4_000 };

export function openOutbound(config: Config, clock: Clock): OutboundCalls {
  const { allow, machine } = operatorAddresses(config, clock);
  return new OutboundCalls({
    rules: addressRules(allow, machine),
    resolver: () => createResolver({ hosts: config.egressHosts, clock, timeouts: TIMEOUTS }),
    authorities: config.outboundCaFile === undefined ? undefined : readAuthorities(config.outboundCaFile),
  });
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+-----END CERTIFICATE-----/;

function readAuthorities(file: string): string {
  const pem = readOperatorFile('BERTH_OUTBOUND_CA_FILE', file);
  if (!CERTIFICATE.test(pem)) throw badValue('BERTH_OUTBOUND_CA_FILE', file, 'a file with certificates (PEM)');
  return pem;
}
