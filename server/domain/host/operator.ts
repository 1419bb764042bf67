// Who may see and change the machines: the account that was created at the first start, with a credential that is not
// restricted to applications.
import type { Accounts } from '../../engines/store/rows/accounts.ts';
import { fault } from '../faults.ts';
import type { AccountCaller } from '../identity/caller.ts';

export async function assertOperator(
  accounts: Pick<Accounts, 'first'>,
  { accountId, applicationIds }: AccountCaller,
): Promise<void> {
  const isOperator = (await accounts.first())?.id === accountId;
  if (isOperator && applicationIds === undefined) return;
  throw fault(
    'permission_denied',
    'Only the operator, whose account was set up at the first start, can read and change the hosts.',
    {
      advice: 'Sign in with that account, or use a token of that account that is not restricted to applications.',
    },
  );
}
