// Validates messages from a live view page. They are untrusted: anyone with the address may send them.
import { Compile } from 'typebox/compile';
import { ViewerMessage } from '../../../contract/live-messages.ts';
import { parseJson } from '../../kit/foreign.ts';

const viewerMessageValidator = Compile(ViewerMessage);

export function readViewerMessage(data: Buffer): ViewerMessage | undefined {
  const value = parseJson(data);
  return viewerMessageValidator.Check(value) ? value : undefined;
}
