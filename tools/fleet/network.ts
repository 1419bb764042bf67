// The network of the fleet on one machine: a namespace for each host and one for database and bucket, connected by a
// bridge in a namespace of its own. No route leads out of this network, and the machine cannot reach it.
import { spawnSync } from 'node:child_process';

export const SUBNET = '10.77.0';

export interface Member {
  /** The name of the member's network namespace. */
  readonly namespace: string;
  readonly address: string;
}

export interface Network {
  readonly members: readonly Member[];
  /** Connects the member to the bridge if `isPlugged` is true, otherwise disconnects it. */
  setPlugged(member: Member, isPlugged: boolean): void;
  /**
   * Sets whether packets from `from` reach `to`. If `isReachable` is false, they are dropped silently. Each call must
   * change the current state.
   */
  route(from: Member, to: Member, isReachable: boolean): void;
  remove(): void;
}

/** Creates a member for each name. */
export function makeNetwork(prefix: string, names: readonly string[]): Network {
  const bridge = `${prefix}-br`;
  const members: readonly Member[] = names.map((name, at) => ({
    namespace: `${prefix}-${name}`,
    address: `${SUBNET}.${at + 1}`,
  }));
  const remove = (): void => {
    for (const namespace of [...members.map(one => one.namespace), bridge])
      spawnSync('ip', ['netns', 'del', namespace], { stdio: 'ignore' });
  };
  try {
    ip('netns', 'add', bridge);
    ip('-n', bridge, 'link', 'add', 'br0', 'type', 'bridge');
    ip('-n', bridge, 'link', 'set', 'br0', 'up');
    for (const [at, { namespace, address }] of members.entries()) addMember(bridge, `v${at}`, namespace, address);
  } catch (error) {
    remove();
    throw error;
  }
  return {
    members,
    remove,
    setPlugged: (member, isPlugged) =>
      ip('-n', bridge, 'link', 'set', `v${members.indexOf(member)}`, isPlugged ? 'up' : 'down'),
    route: (from, to, isReachable) =>
      ip('-n', from.namespace, 'route', isReachable ? 'del' : 'add', 'blackhole', `${to.address}/32`),
  };
}

function addMember(bridge: string, port: string, namespace: string, address: string): void {
  ip('netns', 'add', namespace);
  ip('-n', namespace, 'link', 'set', 'lo', 'up');
  ip('-n', namespace, 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', port, 'netns', bridge);
  ip('-n', bridge, 'link', 'set', port, 'master', 'br0', 'up');
  ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
  ip('-n', namespace, 'link', 'set', 'eth0', 'up');
}

/**
 * Returns the command that runs `command` in a namespace. The names of network namespaces that `command` creates are
 * not visible outside.
 */
export const commandInNamespace = (namespace: string, command: readonly string[]): string[] => [
  ...['nsenter', `--net=/run/netns/${namespace}`, 'unshare', '--mount', '--propagation', 'private'],
  ...['sh', '-c', 'mount -t tmpfs -o mode=755,size=1m tmpfs /run/netns && exec "$@"', 'sh', ...command],
];

function ip(...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync('ip', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`ip ${args.join(' ')} failed: ${error?.message ?? stderr.trim()}`);
}
