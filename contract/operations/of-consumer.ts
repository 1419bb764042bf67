// Parts that all commands of consumers share.
import { ConsumerParams } from '../consumers.ts';

export const COMMANDS_PATH = '/v1/consumer/applications/{appId}/providers/{providerId}';
/** The fields that all commands of signed-in consumers share. */
export const CONSUMER_COMMAND = {
  tag: 'Consumers',
  method: 'POST',
  credential: 'consumer',
  allowsRegisteredOrigins: true,
  mount: 'native',
  unknownFields: 'refuse',
  params: ConsumerParams,
} as const;
