// Runs in a network namespace of the fleet: passes the connections that arrive at one endpoint to others in turn. Each
// argument is FROM=TO[,TO ...]. An endpoint is HOST:PORT, or the path of a Unix socket, which can also be reached from
// outside of the namespace.
import { relay } from './relay.ts';

for (const pair of process.argv.slice(2)) {
  const [from = '', to = ''] = pair.split('=');
  await relay(from, to.split(','));
}
