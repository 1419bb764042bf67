// Gives agents access to the memory of a consumer: `memory.get` and `memory.put`, which require the consent of the
// consumer. A withdrawal of consent takes effect even for a call that is running.
import type { Static } from 'typebox';
import type { EndUser } from '../../../contract/actions.ts';
import { MEMORY_VALUE_BYTES_MAX } from '../../../contract/consumer-memory.ts';
import type { MEMORY_OPERATIONS, MemoryOperationId } from '../../../contract/memory-operations.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { type Fault, isFault } from '../../kit/fault.ts';
import type { ApplicationId, ConsumerId } from '../../kit/ids.ts';
import type { Json, JsonObject } from '../../kit/json.ts';
import { byAgent } from '../audit/by-caller.ts';
import { fault, invalidRequest } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { Outcome, PreparedCall } from '../invocations/prepared.ts';
import { itemMetadata, type Memory } from './memory.ts';

type MemoryInput = Static<(typeof MEMORY_OPERATIONS)['memory.put']['input']>;
type Access = 'read' | 'write';

export interface AgentMemoryParts {
  readonly store: Pick<Store, 'consumers' | 'consumerMemory'>;
  readonly memory: Pick<Memory, 'write' | 'openItem'>;
  readonly clock: Clock;
  readonly publicUrl: string;
}

const ACCESS_BY_OPERATION: Readonly<Record<MemoryOperationId, Access>> = {
  'memory.get': 'read',
  'memory.put': 'write',
};

export class AgentMemory {
  readonly #parts: AgentMemoryParts;

  constructor(parts: AgentMemoryParts) {
    this.#parts = parts;
  }

  /** Checks what the schema of the input cannot express. */
  assertInput(id: MemoryOperationId, input: JsonObject): void {
    if (id !== 'memory.put' || Buffer.byteLength(JSON.stringify(input.value)) <= MEMORY_VALUE_BYTES_MAX) return;
    const message = `is larger than ${MEMORY_VALUE_BYTES_MAX / 1024} KiB as JSON`;
    throw invalidRequest([{ path: 'input.value', message }]);
  }

  async findConsumerId(application: ApplicationId, { providerId, subject }: EndUser): Promise<ConsumerId | undefined> {
    return (await this.#parts.store.consumers.bySubject(application, providerId, subject))?.id;
  }

  /** Throws if the consumer does not exist, or has not given consent. */
  async prepare(caller: AgentCaller, id: MemoryOperationId, callInput: JsonObject): Promise<PreparedCall> {
    const input = callInput as unknown as MemoryInput; // Validated against the schema of the operation.
    const consumerId = await this.findConsumerId(caller.applicationId, input.endUser);
    if (!consumerId) throw invalidRequest([{ path: 'input.endUser', message: 'does not exist in this application' }]);
    const { store, clock } = this.#parts;
    const access = ACCESS_BY_OPERATION[id];
    if (!(await store.consumerMemory.hasConsent(consumerId, input.key, caller.keyId, access, clock.now())))
      throw this.#notAllowed(caller, input.key, access);
    const run = (): Promise<Outcome> =>
      id === 'memory.get' ? this.#get(caller, consumerId, input.key) : this.#put(caller, consumerId, input);
    return { run, release: async () => {} };
  }

  async #get(caller: AgentCaller, consumer: ConsumerId, key: string): Promise<Outcome> {
    const { store, clock, memory } = this.#parts;
    const row = await store.consumerMemory.getWithConsent(consumer, key, caller.keyId, clock.now());
    if (row === 'denied') return failedOutcome(this.#notAllowed(caller, key, 'read'));
    // The output is not kept with the invocation, so the value is stored only in the memory of the consumer. If the
    // item is deleted there, the value is removed completely.
    const item = row && (await memory.openItem(row));
    // The sealed value is JSON.
    const output: JsonObject = item ? { item: { ...item, value: item.value as Json } } : {};
    return { state: 'succeeded', output, isNotKept: true };
  }

  async #put(caller: AgentCaller, consumerId: ConsumerId, { key, value, ifVersion }: MemoryInput): Promise<Outcome> {
    const { applicationId, keyId } = caller;
    try {
      const row = await this.#parts.memory.write({
        ...{ applicationId, consumerId, key, value, by: { kind: 'agent_key', id: keyId }, source: byAgent(caller) },
        ...(ifVersion === undefined ? {} : { ifVersion }),
        assertAllowed: async ({ consumerMemory }) => {
          if (!(await consumerMemory.hasConsent(consumerId, key, keyId, 'write', this.#parts.clock.now())))
            throw this.#notAllowed(caller, key, 'write');
        },
      });
      return { state: 'succeeded', output: { item: itemMetadata(row) } };
    } catch (error) {
      // Nothing was written, because the transaction was rolled back.
      if (isFault(error)) return failedOutcome(error);
      throw error;
    }
  }

  #notAllowed({ applicationId, keyId }: AgentCaller, key: string, access: Access) {
    const consentUrl = `${this.#parts.publicUrl}/consumer/${applicationId}/consent/${keyId}?key=${key}&access=${access}`;
    return fault(
      'consent_required',
      `The end user has not allowed this agent key to ${access} the memory item ${key}.`,
      {
        advice: 'Ask the end user to allow this access at consentUrl.',
        details: { consentUrl, key, access },
      },
    );
  }
}

const failedOutcome = ({ code, message, details }: Fault): Outcome => ({
  state: 'failed',
  // All values of `details` are strings or numbers.
  error: { code, message, retryable: false, phase: 'during', details: { ...details } as JsonObject },
});
