// Verifies the receipt of an invocation in this browser: that its signature is valid for the published keys, and that
// its claims match what the page shows.
import { queryOptions } from '@tanstack/react-query';
import type { Invocation } from '../../../contract/invocations.ts';
import {
  type KeySet,
  type ReceiptClaims,
  ReceiptInvalid,
  verifyReceiptInBrowser,
} from '../../../sdk/verify-receipt-in-browser.ts';
import { queryClient, signingKeysQuery } from './queries.ts';

export interface VerifiedReceipt {
  readonly claims: ReceiptClaims;
  /** What was verified, one sentence for each check. */
  readonly checks: readonly string[];
}

/**
 * Verifies again only when the receipt changes, or when the input or output is shown or hidden. Fails with
 * ReceiptInvalid, CannotVerify or an error of the API.
 */
export const verificationQuery = (app: string, invocation: Invocation) => {
  const { id, receipt, input, output } = invocation;
  return queryOptions({
    queryKey: ['verification', app, id, receipt, input !== undefined, output !== undefined],
    queryFn: async () => verifyInvocation(app, invocation, await queryClient.fetchQuery(signingKeysQuery)),
    enabled: receipt !== undefined,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
};

/** @throws ReceiptInvalid @throws CannotVerify */
async function verifyInvocation(app: string, invocation: Invocation, keys: KeySet): Promise<VerifiedReceipt> {
  const { input, output, receipt = '' } = invocation;
  const claims = await verifyReceiptInBrowser(receipt, {
    ...{ keys, audience: app },
    ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output }),
  });
  for (const [factName, claimed, shown] of comparedFacts(invocation, claims))
    if (claimed !== shown)
      throw new ReceiptInvalid(
        `the ${factName} in the receipt is ${factText(claimed)}, but this page shows ${factText(shown)}`,
      );
  return {
    claims,
    checks: [
      'The signature was made with a key that this service publishes.',
      'The receipt is for this application and this invocation.',
      'Operation, state, times, agent key, session and cost match this page.',
      ...(input === undefined ? [] : ['The input on this page matches the digest in the receipt.']),
      ...(output === undefined ? [] : ['The output on this page matches the digest in the receipt.']),
    ],
  };
}

type Fact = string | number | undefined;

const comparedFacts = (
  invocation: Invocation,
  { sub, berth }: ReceiptClaims,
): ReadonlyArray<readonly [factName: string, claimed: Fact, shown: Fact]> => [
  ['invocation', sub, `invocation:${invocation.id}`],
  ['operation', berth.operation.id, invocation.operationId],
  ['revision', berth.operation.revision, invocation.operationRevision],
  ['effect', berth.operation.effect, invocation.effect],
  ['state', berth.status, invocation.status],
  ['error', berth.error?.code, invocation.error?.code],
  ['agent key', berth.caller.id, invocation.caller.keyId],
  ['session', berth.session?.id, invocation.sessionId],
  ['start', berth.startedAt, invocation.startedAt],
  ['end', berth.endedAt, invocation.endedAt],
  ['input digest', berth.inputDigest, invocation.inputDigest],
  ['output digest', berth.outputDigest, invocation.outputDigest],
  // A receipt without a captured amount was issued while the amount was still held. There is then nothing to compare.
  ['cost', berth.cost.captured ?? 0, berth.cost.captured === undefined ? 0 : invocation.cost.captured],
];

const factText = (fact: Fact): string => (fact === undefined ? 'nothing' : String(fact));
