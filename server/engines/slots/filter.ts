// The filter of system calls that holds for all that runs in a jail: compiled by seccomp/make.py, which says what it refuses.
import { fileURLToPath } from 'node:url';

export function filterPath(architecture: NodeJS.Architecture = process.arch): string {
  if (architecture !== 'x64' && architecture !== 'arm64') throw new Error(`no boxes on ${architecture}`);
  return fileURLToPath(new URL(`seccomp/${architecture}.bpf`, import.meta.url));
}
