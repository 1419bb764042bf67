// The resources that a session has used, as names and values. Values that the host does not measure are left out.
import type { SessionUsage } from '../../../contract/sessions.ts';
import { bytesWords, clockDuration } from '../ui/time.tsx';

export function usageRows(usage: SessionUsage): ReadonlyArray<readonly [string, string]> {
  const { cpuSeconds, peakMemoryBytes, bytesReceived, bytesSent, recordedSeconds } = usage;
  return [
    ...(cpuSeconds === undefined ? [] : [['Processor time', `${cpuSeconds.toFixed(1)} s`] as const]),
    ...(peakMemoryBytes === undefined ? [] : [['Peak memory', bytesWords(peakMemoryBytes)] as const]),
    ['Received', bytesWords(bytesReceived)],
    ['Sent', bytesWords(bytesSent)],
    ...(recordedSeconds > 0 ? [['Recorded', clockDuration(recordedSeconds)] as const] : []),
  ];
}
