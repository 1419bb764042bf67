// `Berth.handoff`, with which a CDP client of a session requests that a person take control. The parameters come from a
// client, so they are validated like a request body.
import type { HandoffTerms } from '../../../contract/handoffs.ts';
import { isFault } from '../../kit/fault.ts';
import type { ApplicationId, KeyId, SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { HandoffRequests, Requester } from './requests.ts';

export interface CdpHandoffsParts {
  readonly requests: Pick<HandoffRequests, 'request'>;
  /** Returns the problems with the parameters. */
  readonly issuesOf: (params: unknown) => ReadonlyArray<{ readonly path: string; readonly message: string }>;
}

export class CdpHandoffs {
  readonly #parts: CdpHandoffsParts;

  constructor(parts: CdpHandoffsParts) {
    this.#parts = parts;
  }

  /**
   * Handles the command `Berth.handoff` and returns its result. Rejects with an error whose message the client gets as
   * the CDP error.
   */
  async request(
    session: { readonly id: SessionId; readonly applicationId: ApplicationId },
    keyId: KeyId | undefined,
    input: JsonObject,
  ): Promise<JsonObject> {
    const { mask, ...params } = input;
    const recordField = typeof mask === 'boolean' ? { record: mask ? 'mask' : 'keep' } : {};
    const terms = { ...params, ...recordField };
    const issues = [...maskIssues(input, recordField.record), ...this.#parts.issuesOf(terms)];
    if (issues.length > 0)
      throw new Error(`Berth.handoff: ${issues.map(({ path, message }) => `${path} ${message}`).join('; ')}`);
    try {
      const handoffRequester = requesterOf(keyId);
      const { requests } = this.#parts;
      const handoff = await requests.request(
        session.applicationId,
        session.id,
        terms as HandoffTerms,
        handoffRequester,
      ); // Validated above.
      const { id, status, expiresAt, fence, claimUrl, warnings } = handoff;
      const warningList = warnings?.map(({ code, path, message }) => ({ code, path: path ?? null, message }));
      return {
        ...{ handoffId: id, status, expiresAt, fence },
        ...(claimUrl === undefined ? {} : { claimUrl }),
        ...(warningList ? { warnings: warningList } : {}),
      };
    } catch (error) {
      if (!isFault(error)) throw error;
      throw new Error(`Berth.handoff (${error.code}): ${error.message}`);
    }
  }
}

/** Returns the problems with `mask`, which is a shorthand for two of the values of `record`. */
function maskIssues({ mask, record }: JsonObject, maskRecord: string | undefined): { path: string; message: string }[] {
  if (mask === undefined) return [];
  if (maskRecord === undefined) return [{ path: 'mask', message: 'must be true or false' }];
  return record === undefined || record === maskRecord
    ? []
    : [
        {
          path: 'mask',
          message: `is ${mask}, which means record=${maskRecord}, but record has another value; omit mask or record`,
        },
      ];
}

/** Returns the requester. A client without a key id was authenticated by the signing key of its session. */
const requesterOf = (keyId: KeyId | undefined): Requester => ({
  ...{ kind: keyId ? 'agent_key' : 'client', origin: 'cdp' },
  ...(keyId ? { id: keyId } : {}),
  source: { actor: keyId ? { kind: 'agent_key', id: keyId } : { kind: 'anonymous' } },
  actor: keyId ? { kind: 'agentKey', id: keyId } : { kind: 'client' },
});
