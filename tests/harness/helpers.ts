// Runs ffmpeg as the server does on this machine, for tests of the recorder without slots. ffmpeg runs in its jail. A
// script that a test runs instead of ffmpeg gets the same limits, but no jail.
import { isAbsolute } from 'node:path';
import { ENCODER_BOUNDS } from '../../server/engines/recorder/ffmpeg.ts';
import { helperChain } from '../../server/engines/slots/helper-chain.ts';
import { jailedForm } from '../../server/engines/slots/open-slots.ts';
import type { Form, HelperCommand } from '../../server/engines/slots/slots.ts';
import { findTool } from '../../server/engines/slots/tools.ts';

/** An unused user id. */
const UID = 199_999;

const helperIn =
  (form: Form) =>
  (program: string, args: readonly string[]): HelperCommand | undefined => {
    const path = isAbsolute(program) ? program : findTool(program);
    return path === undefined ? path : helperChain({ form, uid: UID, program: path, args, bounds: ENCODER_BOUNDS });
  };

export const jailedHelper = helperIn(jailedForm());
export const boundedHelper = helperIn('process');
