// Declares the commands about receipts.
import type { Command } from 'commander';
import type { VerifyReceiptCommandOptions } from './commands/receipts.ts';
import type { Terminal } from './terminal.ts';

export function addReceiptCommands(program: Command, terminal: Terminal): void {
  program
    .command('receipts')
    .description('Verify receipts of invocations.')
    .helpCommand(false)
    .command('verify')
    .description(
      'Verify the signature and the claims of a receipt. The key set is the response of /.well-known/jwks.json, saved to a file.',
    )
    .argument('<file>', 'the receipt, as the API returned it')
    .requiredOption('--jwks <file>', 'the saved key set')
    .option('--input <file>', 'the input as JSON; it must match the receipt')
    .option('--output <file>', 'the output as JSON; it must match the receipt')
    .option('--action <file>', 'the content of the Action; its digest must match the receipt')
    .option('--issuer <url>', 'the service that must have issued the receipt')
    .option('--audience <id>', 'the application that the receipt must be for')
    .option('--json', 'print the claims as JSON')
    .action(async (file: string, options: VerifyReceiptCommandOptions) =>
      (await import('./commands/receipts.ts')).verifyReceiptFile(terminal, file, options),
    );
}
