// `berth credits`: shows the credit of an application's account, adds credit that the operator gives, and confirms
// payments.
import { MICROCREDITS_PER_CREDIT } from '../../contract/credits.ts';
import { printJson, type Terminal, table } from '../terminal.ts';
import { withLocal } from './keys.ts';
import type { JsonOption } from './tokens.ts';

export interface ShowCreditsOptions extends JsonOption {
  readonly application?: string;
}

export interface GrantOptions extends JsonOption {
  readonly reason: string;
}

export function showCredits(terminal: Terminal, { application, json }: ShowCreditsOptions): Promise<void> {
  return withLocal(terminal, async local => {
    const row = await local.application(application);
    const credits = await local.credits(row);
    const { billingAccountId: accountId } = row;
    if (json) return printJson(terminal, { accountId, applicationId: row.id, ...credits });
    const { available, reserved, thisApplication, enforced } = credits;
    terminal.print(
      table([
        ['ACCOUNT', 'AVAILABLE', 'RESERVED', 'USED THIS MONTH', 'ENFORCED'],
        [
          ...[accountId, formatCredits(available), formatCredits(reserved)],
          ...[formatCredits(thisApplication.capturedThisMonth), enforced ? 'yes' : 'no'],
        ],
      ]),
    );
  });
}

/** `amount` is in micro-credits. */
export function grantCredits(
  terminal: Terminal,
  account: string,
  amount: number,
  { reason, json }: GrantOptions,
): Promise<void> {
  return withLocal(terminal, async local => {
    const { accountId, available } = await local.grantCredit(account, amount, reason);
    if (json) return printJson(terminal, { accountId, amount, available });
    terminal.say(
      `Account ${accountId} received ${formatCredits(amount)} credits and now has ${formatCredits(available)} available.\n`,
    );
  });
}

export interface ConfirmOptions extends JsonOption {
  readonly reason?: string;
}

export function confirmCheckout(terminal: Terminal, id: string, { reason, json }: ConfirmOptions): Promise<void> {
  return withLocal(terminal, async local => {
    const { accountId, amount, bonus, reference } = await local.confirmCheckout(id, reason);
    if (json) return printJson(terminal, { id, accountId, amount, bonus });
    terminal.say(
      `Payment ${reference} is confirmed: account ${accountId} received ${formatCredits(amount + bonus)} credits.\n`,
    );
  });
}

/** Formats micro-credits as credits, with up to six decimals. */
const formatCredits = (amount: number): string => {
  const wholeCredits = Math.trunc(amount / MICROCREDITS_PER_CREDIT);
  const fraction = String(amount % MICROCREDITS_PER_CREDIT)
    .padStart(6, '0')
    .replace(/0+$/, '');
  return fraction === '' ? String(wholeCredits) : `${wholeCredits}.${fraction}`;
};
