// Whether bytes stand at a place in a message. A loop, because a call out of JavaScript costs more than a few bytes.

export function holdsAt(message: Buffer, at: number, part: Buffer): boolean {
  for (let index = 0; index < part.length; index++) if (message[at + index] !== part[index]) return false;
  return true;
}
