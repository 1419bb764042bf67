// What the HTTP side may ask about recordings.
import type { NotRecorded, RecordingDownload, Replay } from '../../../contract/recordings.ts';
import type { AgentCaller } from '../identity/caller.ts';

export interface Recordings {
  /** The pages of which there is something to watch. Their addresses are relative to the sessions of the mount. */
  replays(
    caller: AgentCaller,
    sessionId: string,
  ): Promise<{ pages: Array<Omit<Replay, 'url'>>; notRecorded?: NotRecorded[]; status?: 'pending' }>;
  playlist(caller: AgentCaller, sessionId: string, pageId: string): Promise<string>;
  /** How the session looks, or looked at its end. Undefined: no picture was taken. */
  picture(caller: AgentCaller, sessionId: string): Promise<Buffer | undefined>;
  askForFiles(caller: AgentCaller, sessionId: string): Promise<RecordingDownload[]>;
  files(caller: AgentCaller, sessionId: string): Promise<RecordingDownload[]>;
}
