// Messages of a live view page, which come from whoever has its address: only what the contract names gets through.
import { Compile } from 'typebox/compile';
import { ViewerMessage } from '../../../contract/live-messages.ts';
import { parseJson } from '../../kit/foreign.ts';

const viewerMessage = Compile(ViewerMessage);

export function readViewerMessage(data: Buffer): ViewerMessage | undefined {
  const value = parseJson(data);
  return viewerMessage.Check(value) ? value : undefined;
}
