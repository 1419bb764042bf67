// Providers other than `hosted`.
import type { ConsumerSessionRow } from '../../engines/store/rows/consumers.ts';
import { providerOff } from './faults.ts';
import type { UpstreamStart } from './sign-ins.ts';

export class Upstream {
  readonly start: UpstreamStart = async (_application, { providerId }) => {
    throw providerOff(providerId);
  };

  async logoutUrl(_session: ConsumerSessionRow | undefined): Promise<string | undefined> {
    return undefined;
  }
}
