// The built-in operations with which agents use the memory of a consumer. They need the consent of the consumer but no
// browser.
import { Type } from 'typebox';
import { EndUser } from './actions.ts';
import { MemoryItem, MemoryKey, MemoryValue, PutMemory } from './consumer-memory.ts';
import type { ManagedOperation } from './managed-operation.ts';

const TIMEOUT_MS = 10_000;
const { value: _, ...ITEM_WITHOUT_VALUE } = MemoryItem.properties;

export const MEMORY_OPERATIONS = {
  'memory.get': {
    title: 'Read the memory of an end user',
    description:
      'Returns an item that is remembered about an end user of the application. The end user must have allowed this. The value is returned only to a caller that waits for the result; it is not kept with the invocation.',
    effect: 'read',
    revision: 1,
    timeoutMs: TIMEOUT_MS,
    input: Type.Object({ endUser: EndUser, key: MemoryKey }, { additionalProperties: false }),
    output: Type.Object(
      { item: Type.Optional(MemoryItem) },
      { description: '`item` is absent if there is no such item.' },
    ),
    example: { endUser: { providerId: 'hosted', subject: 'u_81' }, key: 'address.home' },
  },
  'memory.put': {
    title: 'Write to the memory of an end user',
    description:
      'Writes an item that is remembered about an end user of the application. The end user must have allowed this, and can see who wrote the item.',
    effect: 'write',
    revision: 1,
    timeoutMs: TIMEOUT_MS,
    input: Type.Object(
      { endUser: EndUser, key: MemoryKey, value: MemoryValue, ifVersion: PutMemory.properties.ifVersion },
      { additionalProperties: false },
    ),
    output: Type.Object({ item: Type.Object(ITEM_WITHOUT_VALUE, { description: 'The item, without its value.' }) }),
    example: { endUser: { providerId: 'hosted', subject: 'u_81' }, key: 'size.shoes', value: 42 },
  },
} as const satisfies Readonly<Record<string, ManagedOperation>>;

export type MemoryOperationId = keyof typeof MEMORY_OPERATIONS;

export const isMemoryOperation = (id: string): id is MemoryOperationId => Object.hasOwn(MEMORY_OPERATIONS, id);
