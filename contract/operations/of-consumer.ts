// What all commands of consumers have in common.
import { ConsumerParams } from '../consumers.ts';

export const COMMANDS = '/v1/consumer/applications/{appId}/providers/{providerId}';
/** Commands of consumers who are signed in. */
export const OF_CONSUMER = {
  tag: 'Consumers',
  method: 'POST',
  credential: 'consumer',
  forOrigins: true,
  mount: 'native',
  unknownFields: 'refuse',
  params: ConsumerParams,
} as const;
