// A command that cannot be done, with the exit code that says so. Its message is for people and says what to do.
import type { ExitCode } from './exit-codes.ts';

export class CommandFailed extends Error {
  readonly code: ExitCode;

  constructor(code: ExitCode, message: string) {
    super(message);
    this.name = 'CommandFailed';
    this.code = code;
  }
}
