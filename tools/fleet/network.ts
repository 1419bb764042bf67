// The network of the fleet on one machine: a namespace for each host and one for database and bucket, joined by a bridge in a
// namespace of its own. Nothing leads out of it, and nothing of it is seen by the machine.
import { spawnSync } from 'node:child_process';

const SUBNET = '10.77.0';

export interface Member {
  /** Of its network namespace. */
  readonly namespace: string;
  readonly address: string;
}

/** Makes them, in order; the returned function removes all of it. */
export function makeNetwork(prefix: string, names: readonly string[]): { members: Member[]; remove: () => void } {
  const bridge = `${prefix}-br`;
  const members = names.map((name, at) => ({ namespace: `${prefix}-${name}`, address: `${SUBNET}.${at + 1}` }));
  const remove = (): void => {
    for (const namespace of [...members.map(one => one.namespace), bridge])
      spawnSync('ip', ['netns', 'del', namespace], { stdio: 'ignore' });
  };
  try {
    ip('netns', 'add', bridge);
    ip('-n', bridge, 'link', 'add', 'br0', 'type', 'bridge');
    ip('-n', bridge, 'link', 'set', 'br0', 'up');
    for (const [at, { namespace, address }] of members.entries()) join(bridge, `v${at}`, namespace, address);
  } catch (error) {
    remove();
    throw error;
  }
  return { members, remove };
}

function join(bridge: string, port: string, namespace: string, address: string): void {
  ip('netns', 'add', namespace);
  ip('-n', namespace, 'link', 'set', 'lo', 'up');
  ip('-n', namespace, 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', port, 'netns', bridge);
  ip('-n', bridge, 'link', 'set', port, 'master', 'br0', 'up');
  ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
  ip('-n', namespace, 'link', 'set', 'eth0', 'up');
}

/** The command that runs another in a namespace. Network namespaces that it makes have names of its own. */
export const inside = (namespace: string, command: readonly string[]): string[] => [
  ...['nsenter', `--net=/run/netns/${namespace}`, 'unshare', '--mount', '--propagation', 'private'],
  ...['sh', '-c', 'mount -t tmpfs -o mode=755,size=1m tmpfs /run/netns && exec "$@"', 'sh', ...command],
];

function ip(...args: readonly string[]): void {
  const { status, stderr } = spawnSync('ip', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr.trim()}`);
}
