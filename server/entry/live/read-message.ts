// Messages of a live view page, which come from whoever has its address: only what the contract names gets through.
import { Compile } from 'typebox/compile';
import { ViewerMessage } from '../../../contract/live-messages.ts';

const viewerMessage = Compile(ViewerMessage);

export function readViewerMessage(data: Buffer): ViewerMessage | undefined {
  try {
    const value: unknown = JSON.parse(data.toString('utf8'));
    return viewerMessage.Check(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
