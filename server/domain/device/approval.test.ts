import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { Secret } from '../../kit/secret.ts';
import type { HumanCaller } from '../identity/caller.ts';
import { Approval, type ApprovalParts } from './approval.ts';

const PEER = { address: '198.51.100.1', port: 1, client: '198.51.100.1' };
const CALLER = { accountId: 'ada', source: { ip: '198.51.100.1' } } as unknown as HumanCaller;

/**
 * Denies a claimed device authorization that another request decides, or that expires, just before the denial is
 * written. Returns the error code and the details of the fault.
 */
async function denyTooLate(rowAfterwards: object | undefined): Promise<unknown> {
  const claimedRow = { id: 'device', status: 'claimed', userCodeHash: Buffer.from('code') };
  const recordedEntries: unknown[] = [];
  const approval = new Approval({
    ...{ clock: systemClock, secret: new Secret('pepper'), isFromSession: () => false },
    store: {
      device: {
        claim: async () => ({ row: claimedRow, isFirst: false }),
        getClaimed: async (userCode: Buffer, account: string) =>
          userCode.equals(claimedRow.userCodeHash) && account === 'ada' ? rowAfterwards : undefined,
      },
      atomically: async (work: (trx: unknown) => unknown) => work({ device: { decide: async () => false } }),
    },
    tallies: { of: () => ({ take: async () => async () => {} }) },
    audit: { recordDecision: async (...entry: unknown[]) => void recordedEntries.push(entry) },
  } as unknown as ApprovalParts); // Contains only the members that a denial uses.
  const request = { userCode: 'BCDF-GHJK', decision: 'deny' } as const;
  const failure = await approval.decide(CALLER, request, PEER).then(
    () => assert.fail('the denial was accepted'),
    (error: unknown) => error,
  );
  assert.deepEqual(recordedEntries, []);
  return isFault(failure) ? [failure.code, failure.details] : failure;
}

test('refuses a second decision with already_decided and the status that the first decision set', async () => {
  const approvedRow = { id: 'device', status: 'approved' };
  assert.deepEqual(await denyTooLate(approvedRow), ['already_decided', { status: 'approved' }]);
});

test('refuses a decision with not_found if the code expires before the decision is written', async () => {
  assert.deepEqual(await denyTooLate(undefined), ['not_found', undefined]);
});
