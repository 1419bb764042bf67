// berth stop: tells the server of this data folder to stop, waits until it has, and ends every browser that it left.
import { readConfig } from '../../server/config.ts';
import { endLeftovers } from '../../server/leftovers.ts';
import { isRunning, runningServer, type ServerRecord } from '../../server/server-record.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { printJson, type Terminal } from '../terminal.ts';

/** A server that drains closes each browser in at most ten seconds, all at once. */
const GONE_WITHIN_MS = 90_000;
const LOOK_EVERY_MS = 50;

export interface StopOptions {
  readonly drain?: true;
  readonly json?: true;
}

export async function stop(terminal: Terminal, options: StopOptions): Promise<void> {
  const { dataDir } = readConfig(terminal.env);
  const server = runningServer(dataDir);
  if (server) await end(server, options.drain ? 'SIGINT' : 'SIGTERM');
  const { swept, ended } = await endLeftovers(terminal.env);
  const pid = server?.pid;
  if (options.json)
    return printJson(terminal, { ...(pid ? { pid } : {}), stopped: server !== undefined, ended, swept });
  terminal.print(server ? `The server (process ${pid}) has stopped.\n` : `No server ran in ${dataDir}.\n`);
  if (ended.length > 0) terminal.print(`Ended ${ended.length} sessions that it had left: ${ended.join(', ')}\n`);
}

async function end(server: ServerRecord, signal: 'SIGINT' | 'SIGTERM'): Promise<void> {
  process.kill(server.pid, signal);
  const deadline = Date.now() + GONE_WITHIN_MS;
  while (isRunning(server)) {
    if (Date.now() > deadline)
      throw new CommandFailed(
        EXIT.failed,
        `Process ${server.pid} did not stop within ${GONE_WITHIN_MS / 1000} s of ${signal}. Look at its log; \`kill -9 ${server.pid}\` and \`berth stop\` end it and its browsers by force.`,
      );
    await new Promise(resolve => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
