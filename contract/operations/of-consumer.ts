// Parts that all commands of consumers share.
import { ConsumerParams } from '../consumers.ts';

export const COMMANDS_PATH = '/v1/consumer/applications/{appId}/providers/{providerId}';
/** Commands of consumers who are signed in. */
export const CONSUMER_COMMAND = {
  tag: 'Consumers',
  method: 'POST',
  credential: 'consumer',
  allowsRegisteredOrigins: true,
  mount: 'native',
  unknownFields: 'refuse',
  params: ConsumerParams,
} as const;
