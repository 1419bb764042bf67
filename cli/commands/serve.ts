// `berth serve`: runs the service until it is told to stop.
import { serve as serveUntilStopped } from '../../server/main.ts';
import type { Terminal } from '../terminal.ts';

export const serve = (terminal: Terminal): Promise<number> => serveUntilStopped(terminal.env);
