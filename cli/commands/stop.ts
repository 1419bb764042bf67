// `berth stop`: stops the server of this data folder, waits until the server has stopped, and ends the browsers that
// the server left running.
import { readConfig } from '../../server/config.ts';
import { endLeftovers } from '../../server/leftovers.ts';
import { isRunning, runningServer, type ServerRecord } from '../../server/server-record.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { printJson, type Terminal } from '../terminal.ts';

/** Leaves time for a drain, which closes browsers in parallel, each within ten seconds. */
const STOP_TIMEOUT_MS = 90_000;
const POLL_INTERVAL_MS = 50;

export interface StopOptions {
  readonly drain?: true;
  readonly json?: true;
}

export async function stop(terminal: Terminal, options: StopOptions): Promise<void> {
  const { dataDir } = readConfig(terminal.env);
  const server = runningServer(dataDir);
  if (server) await endServer(server, options.drain ? 'SIGINT' : 'SIGTERM');
  const { sweptSessionIds: swept, endedSessionIds: endedIds } = await endLeftovers(terminal.env);
  const pid = server?.pid;
  if (options.json)
    return printJson(terminal, { ...(pid ? { pid } : {}), stopped: server !== undefined, ended: endedIds, swept });
  terminal.print(server ? `The server (process ${pid}) has stopped.\n` : `No server was running in ${dataDir}.\n`);
  if (endedIds.length > 0)
    terminal.print(`Ended ${endedIds.length} sessions that the server left running: ${endedIds.join(', ')}\n`);
}

async function endServer(server: ServerRecord, signal: 'SIGINT' | 'SIGTERM'): Promise<void> {
  process.kill(server.pid, signal);
  const deadlineMs = Date.now() + STOP_TIMEOUT_MS;
  while (isRunning(server)) {
    if (Date.now() > deadlineMs)
      throw new CommandFailed(
        EXIT.failed,
        `Process ${server.pid} did not stop within ${STOP_TIMEOUT_MS / 1000} s of ${signal}. See its log. To end it and its browsers by force, run \`kill -9 ${server.pid}\` and then \`berth stop\`.`,
      );
    await new Promise(resolve => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}
