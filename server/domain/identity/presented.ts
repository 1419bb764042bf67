// Reads the credentials in the headers of a request. If another host passed the request on, the addresses of the peer
// and of the client are those that the other host reported.
import type { IncomingMessage } from 'node:http';
import { forwardedFrom } from '../../kit/forwarded.ts';
import type { PresentedCredentials } from './callers.ts';
import { clientAddress } from './client-address.ts';

export const presentedCredentialsOf = (
  request: Pick<IncomingMessage, 'headers' | 'socket'>,
  trustedProxies: readonly string[],
): PresentedCredentials => {
  const { headers } = request;
  return {
    authorization: headers.authorization,
    apiKey: headers['x-bb-api-key']?.toString(),
    userAgent: headers['user-agent'],
    ...addressesOf(request, trustedProxies),
  };
};

/** Returns the remote end of the connection of a request, and the client behind trusted proxies. */
export function addressesOf(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  trustedProxies: readonly string[],
): Required<Pick<PresentedCredentials, 'peer' | 'ip'>> {
  const forwardedClient = forwardedFrom({ headers });
  if (forwardedClient)
    return { ip: forwardedClient.ip, peer: { address: forwardedClient.address, port: forwardedClient.port } };
  const { remoteAddress, remotePort } = socket;
  return {
    peer: { address: clientAddress({ remoteAddress, forwardedFor: undefined }, []), port: remotePort },
    ip: clientAddress({ remoteAddress, forwardedFor: headers['x-forwarded-for'] }, trustedProxies),
  };
}
