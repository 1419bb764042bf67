// A create that found no free slot on this host while another host has one. The entry asks that host; a caller sees it only if none
// of them takes the session after all.
import { capacity } from '../faults.ts';

/** Set in the answer to the host that passed the request on. */
export const ROOM_ELSEWHERE_HEADER = 'x-berth-room-elsewhere';

const noted = new WeakSet<object>();

export function roomElsewhere(slots: number, used: number): Error {
  const refused = capacity(slots, used);
  noted.add(refused);
  return refused;
}

export const isRoomElsewhere = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && noted.has(error);
