// `berth accounts link`: prints a link that sets up an account, or restores access to one whose password is lost.
import { printJson, type Terminal } from '../terminal.ts';
import { withLocal } from './keys.ts';

export interface AccountLinkOptions {
  readonly email?: string;
  readonly json?: true;
}

export function printAccountLink(terminal: Terminal, { email, json }: AccountLinkOptions): Promise<void> {
  return withLocal(terminal, async local => {
    const url = await local.createSetUpLink(email);
    if (json) return printJson(terminal, { url });
    terminal.say(
      'Open this link within a day. It works once, and lets whoever opens it set the password of the account:\n\n',
    );
    terminal.print(`${url}\n`);
  });
}
