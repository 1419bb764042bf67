// The path of the seccomp filter for all programs in a jail. seccomp/make.py creates the filter and lists the system
// calls that it refuses.
import { fileURLToPath } from 'node:url';

export function filterPath(architecture: NodeJS.Architecture = process.arch): string {
  if (architecture !== 'x64' && architecture !== 'arm64')
    throw new Error(`boxes require an x64 or arm64 processor, not ${architecture}`);
  return fileURLToPath(new URL(`seccomp/${architecture}.bpf`, import.meta.url));
}
