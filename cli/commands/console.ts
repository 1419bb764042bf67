// `berth console`: prints a link with a new token in its fragment, which browsers never send to a server.
import { printJson, type Terminal } from '../terminal.ts';
import { withLocal } from './keys.ts';

export function printConsoleLink(terminal: Terminal, options: { json?: true }): Promise<void> {
  return withLocal(terminal, async local => {
    const token = await local.createConsoleToken();
    const url = `${local.config.publicUrl}/console#token=${token.reveal()}`;
    if (options.json) return printJson(terminal, { url });
    terminal.say('Open this link within a day. Whoever opens it is signed in as you:\n\n');
    terminal.print(`${url}\n`);
  });
}
