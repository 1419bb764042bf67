// Reads the credentials in the headers of a request.
import type { IncomingMessage } from 'node:http';
import type { Presented } from './callers.ts';
import { clientAddress } from './client-address.ts';

export const presentedBy = (
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  trustedProxies: readonly string[],
): Presented => ({
  authorization: headers.authorization,
  apiKey: headers['x-bb-api-key']?.toString(),
  peer: {
    address: clientAddress({ remoteAddress: socket.remoteAddress, forwardedFor: undefined }, []),
    port: socket.remotePort,
  },
  userAgent: headers['user-agent'],
  ip: clientAddress({ remoteAddress: socket.remoteAddress, forwardedFor: headers['x-forwarded-for'] }, trustedProxies),
});
