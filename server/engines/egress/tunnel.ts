// Two sockets joined so that each side learns what happened to the other: its end, its reset, its slowness.
// The data passes by `pipe` alone.
import type { Socket } from 'node:net';

export function join(browser: Socket, outside: Socket): void {
  tie(browser, outside);
  tie(outside, browser);
  browser.pipe(outside);
  outside.pipe(browser);
}

function tie(from: Socket, to: Socket): void {
  from.once('error', () => to.resetAndDestroy());
  // What `from` had sent before it closed may still wait in `to`: it is written out first.
  from.once('close', () => to.destroySoon());
}
