// An expected failure of a command, with its exit code. The message is written for people, and contains the remedy.
import type { ExitCode } from './exit-codes.ts';

export class CommandFailed extends Error {
  readonly code: ExitCode;

  constructor(code: ExitCode, message: string) {
    super(message);
    this.name = 'CommandFailed';
    this.code = code;
  }
}
