// Adds a second interface, without a route, to a box's network namespace. Without this interface, Chromium considers
// the machine offline, and `navigator.onLine` is false in every page. The kinds of interface that the kernel supports
// are determined once.
import { spawnSync } from 'node:child_process';
import type { Form } from './slots.ts';
import { TOOL_PATH } from './tools.ts';

/**
 * The kinds of interface to try, the cheapest first. dummy and ifb drop every packet; the peer of veth is in the same
 * namespace. Automatic addresses (IPv6, link-local) are switched off.
 */
const KIND_COMMANDS = [
  ['link add eth0 type dummy'],
  ['link add eth0 type ifb'],
  ['link add eth0 type veth peer name eth1', 'link set eth1 addrgenmode none', 'link set eth1 up'],
] as const;

/**
 * An address from a block reserved for documentation (RFC 5737). A /32 adds no route. All boxes have the same address.
 */
const ADDRESS = '192.0.2.1/32';
const ATTEMPT_TIMEOUT_MS = 5_000;

const LOOPBACK_COMMAND = 'link set lo up';

/** Commands for `ip -batch`. */
export type LinkCommands = readonly string[];

export const LOOPBACK_ONLY: LinkCommands = [LOOPBACK_COMMAND];

/** Returns the commands that create a box's interfaces: only loopback if the kernel supports none of the kinds. */
export function linkCommands(form: Form): LinkCommands {
  if (form === 'process') return [];
  const candidates = KIND_COMMANDS.map(kindCommands => [
    LOOPBACK_COMMAND,
    ...kindCommands,
    'link set eth0 addrgenmode none',
    `address add ${ADDRESS} dev eth0`,
    'link set eth0 up',
  ]);
  return candidates.find(commands => isSupported(form, commands)) ?? LOOPBACK_ONLY;
}

function isSupported(form: Exclude<Form, 'process'>, commands: LinkCommands): boolean {
  const userOptions = form === 'root' ? [] : ['--user', '--map-current-user', '--keep-caps'];
  const args = [...userOptions, '--net', '--', 'ip', '-batch', '-'];
  const options = { input: commands.join('\n'), env: { PATH: TOOL_PATH }, timeout: ATTEMPT_TIMEOUT_MS };
  return spawnSync('unshare', args, options).status === 0;
}
