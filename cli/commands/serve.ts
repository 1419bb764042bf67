// `berth serve`: runs the service until a signal stops it.
import { serve as serveUntilStopped } from '../../server/main.ts';
import type { Terminal } from '../terminal.ts';

export const serve = (terminal: Terminal): Promise<number> => serveUntilStopped(terminal.env);
