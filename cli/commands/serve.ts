// berth serve: the service itself, until it is told to stop.
import { serve as serveUntilStopped } from '../../server/main.ts';
import type { Terminal } from '../terminal.ts';

export const serve = (terminal: Terminal): Promise<number> => serveUntilStopped(terminal.env);
