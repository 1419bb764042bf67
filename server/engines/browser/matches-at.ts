// Whether `message` contains the bytes of `part` at the index `at`. Uses a loop, because a native call costs more for a
// few bytes.

export function matchesAt(message: Buffer, at: number, part: Buffer): boolean {
  for (let index = 0; index < part.length; index++) if (message[at + index] !== part[index]) return false;
  return true;
}
