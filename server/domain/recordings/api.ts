// The operations on recordings that HTTP handlers may call.
import type { RecordingDownload, Replay, UnrecordedPages } from '../../../contract/recordings.ts';
import type { AgentCaller } from '../identity/caller.ts';

export interface Recordings {
  /**
   * Pages with a replay. The HTTP handler adds the address of each replay, which depends on the path of the request.
   */
  replays(
    caller: AgentCaller,
    sessionId: string,
  ): Promise<{ pages: Array<Omit<Replay, 'url'>>; notRecorded?: UnrecordedPages[]; status?: 'pending' }>;
  playlist(caller: AgentCaller, sessionId: string, pageId: string): Promise<string>;
  /**
   * The newest picture of the session or, after the session has ended, the last one. Undefined if no picture was taken.
   */
  picture(caller: AgentCaller, sessionId: string): Promise<Buffer | undefined>;
  requestFiles(caller: AgentCaller, sessionId: string): Promise<RecordingDownload[]>;
  files(caller: AgentCaller, sessionId: string): Promise<RecordingDownload[]>;
}
