// `berth vault`: changes the master key. `berth keys rotate-signing`: changes the signing key.
import { printJson, type Terminal } from '../terminal.ts';
import { withLocal } from './keys.ts';
import type { JsonOption } from './tokens.ts';

export function rotateVault(terminal: Terminal, options: JsonOption): Promise<void> {
  return withLocal(terminal, async local => {
    const { rewrapped } = await local.rotateMasterKey();
    if (options.json) return printJson(terminal, { rewrapped });
    terminal.say(`The vault has a new master key. It wraps ${rewrapped} data keys.\n`);
  });
}

export function rotateSigningKey(terminal: Terminal, options: JsonOption): Promise<void> {
  return withLocal(terminal, async local => {
    const { kid } = await local.rotateSigningKey();
    if (options.json) return printJson(terminal, { kid });
    terminal.say(`Key ${kid} is now used for signing.\n`);
  });
}
