// Whether a message contains these bytes at this index. Uses a loop, because for a few bytes a native call costs more.

export function matchesAt(message: Buffer, at: number, part: Buffer): boolean {
  for (let index = 0; index < part.length; index++) if (message[at + index] !== part[index]) return false;
  return true;
}
