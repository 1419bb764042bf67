// Declares the commands about receipts.
import type { Command } from 'commander';
import type { VerifyReceiptCommandOptions } from './commands/receipts.ts';
import type { Terminal } from './terminal.ts';

export function addReceipts(program: Command, terminal: Terminal): void {
  program
    .command('receipts')
    .description('Check receipts of invocations.')
    .helpCommand(false)
    .command('verify')
    .description(
      'Verify the signature of a receipt and what it says. The key set is the saved answer of /.well-known/jwks.json of the service.',
    )
    .argument('<file>', 'the receipt, as the API returned it')
    .requiredOption('--jwks <file>', 'the saved key set')
    .option('--input <file>', 'the input as JSON; it must match the receipt')
    .option('--output <file>', 'the output as JSON; it must match the receipt')
    .option('--action <file>', 'the content of the Action, whose digest must be the one that was approved')
    .option('--issuer <url>', 'the service that must have issued it')
    .option('--audience <id>', 'the application that it must be for')
    .option('--json', 'print the claims as JSON')
    .action(async (file: string, options: VerifyReceiptCommandOptions) =>
      (await import('./commands/receipts.ts')).verifyReceiptFile(terminal, file, options),
    );
}
