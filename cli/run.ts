// Runs one command line, and converts every outcome into an exit code and, on failure, an error message.
import { CommanderError } from 'commander';
import { CommandFailed } from './command-failed.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { berthProgram } from './program.ts';
import type { Terminal } from './terminal.ts';

export async function runBerth(args: readonly string[], terminal: Terminal): Promise<number> {
  let code: number = EXIT.done;
  const program = berthProgram(terminal, newExitCode => {
    code = newExitCode;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    terminal.say(`berth: ${textOf(error)}\n`);
    return exitCodeOf(error);
  }
}

/** Unexpected errors are printed with their stack, expected ones without. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isExpected = error instanceof CommandFailed || error.name === 'Fault' || error.name === 'BadConfig';
  return isExpected ? error.message : (error.stack ?? error.message);
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommandFailed) return error.code;
  if (error instanceof Error && error.name === 'BadConfig') return EXIT.usage;
  return EXIT.failed;
}
