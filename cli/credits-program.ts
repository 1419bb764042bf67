// Declares the commands about credit.
import type { Command } from 'commander';
import type { ConfirmOptions, GrantOptions, ShowCreditsOptions } from './commands/credits.ts';
import { readCredits } from './option-values.ts';
import type { Terminal } from './terminal.ts';

export function addCreditCommands(program: Command, terminal: Terminal): void {
  const credits = program
    .command('credits')
    .description('Show the credit of accounts, and give credit. Works while the service is running.')
    .helpCommand(false);
  credits
    .command('show')
    .description('Print the credit of the account that an application bills.')
    .option('--application <id|name>', 'the application; required if there are several')
    .option('--json', 'print the API response, in micro-credits, as JSON')
    .action(async (options: ShowCreditsOptions) =>
      (await import('./commands/credits.ts')).showCredits(terminal, options),
    );
  credits
    .command('grant')
    .description('Give credit to an account. The reason is kept with the entry and in the audit log.')
    .argument(
      '<account>',
      'the e-mail address or id of the account, or - for the account that was created at the first start',
    )
    .argument('<credits>', 'the number of credits, such as 50 or 0.25', readCredits)
    .requiredOption('--reason <text>', 'the reason')
    .option('--json', 'print {"accountId","amount","available"} in micro-credits')
    .action(async (account: string, amount: number, options: GrantOptions) =>
      (await import('./commands/credits.ts')).grantCredits(terminal, account, amount, options),
    );
  credits
    .command('confirm')
    .description(
      'Confirm that a checkout was paid, and add its credit to the account. A checkout is credited only once.',
    )
    .argument('<checkout-id>', 'the id of the checkout')
    .option('--reason <text>', 'a note for the audit log, such as a bank transfer number')
    .option('--json', 'print {"id","accountId","amount","bonus"} in micro-credits')
    .action(async (id: string, options: ConfirmOptions) =>
      (await import('./commands/credits.ts')).confirmCheckout(terminal, id, options),
    );
}
