// Finds the ffmpeg processes of a server among its child processes.
import { readdirSync, readFileSync } from 'node:fs';

export function encoderPidsOf(serverPid: number): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => read(pid, 'comm') === 'ffmpeg\n' && descendsFrom(pid, serverPid));
}

function descendsFrom(pid: number, ancestor: number): boolean {
  for (let at = pid; at > 1; at = Number(/^PPid:\s+(\d+)/m.exec(read(at, 'status'))?.[1] ?? 0))
    if (at === ancestor) return true;
  return false;
}

function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return ''; // the process has ended
  }
}
