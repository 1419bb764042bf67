// The second interface of a box's network namespace. It leads nowhere; but with loopback alone Chromium takes the machine
// for offline, and `navigator.onLine` is false in every page. Which kind of interface the kernel has is tried once.
import { spawnSync } from 'node:child_process';
import type { Form } from './slots.ts';
import { TOOL_PATH } from './tools.ts';

/**
 * The cheapest first. What is sent into the first two is dropped; a pair has its other end in the same namespace.
 * Each is told to have no address of its own making (IPv6, link-local).
 */
const KINDS = [
  ['link add eth0 type dummy'],
  ['link add eth0 type ifb'],
  ['link add eth0 type veth peer name eth1', 'link set eth1 addrgenmode none', 'link set eth1 up'],
] as const;

/** RFC 5737: an address of nobody. As a single one it brings no route, and it is the same in every box. */
const ADDRESS = '192.0.2.1/32';
const TRIED_WITHIN_MS = 5_000;

const LOOPBACK = 'link set lo up';

/** Commands of `ip -batch`. */
export type LinkCommands = readonly string[];

export const LOOPBACK_ONLY: LinkCommands = [LOOPBACK];

/** What makes the interfaces of a box here; loopback alone where the kernel knows none of the kinds. */
export function linkCommands(form: Form): LinkCommands {
  if (form === 'process') return [];
  const all = KINDS.map(make => [
    LOOPBACK,
    ...make,
    'link set eth0 addrgenmode none',
    `address add ${ADDRESS} dev eth0`,
    'link set eth0 up',
  ]);
  return all.find(commands => works(form, commands)) ?? LOOPBACK_ONLY;
}

function works(form: Exclude<Form, 'process'>, commands: LinkCommands): boolean {
  const user = form === 'root' ? [] : ['--user', '--map-current-user', '--keep-caps'];
  const args = [...user, '--net', '--', 'ip', '-batch', '-'];
  const options = { input: commands.join('\n'), env: { PATH: TOOL_PATH }, timeout: TRIED_WITHIN_MS };
  return spawnSync('unshare', args, options).status === 0;
}
