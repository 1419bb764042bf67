// UTC days, the periods in which bytes are counted.
const DAY_MS = 24 * 3600_000;

/** Returns the UTC day as `YYYY-MM-DD`. */
export const utcDay = (time: Date): string => time.toISOString().slice(0, 10);

export const secondsToNextDay = (time: Date): number => Math.ceil((DAY_MS - (time.getTime() % DAY_MS)) / 1000);

export const startOfUtcDay = (time: Date): Date => new Date(time.getTime() - (time.getTime() % DAY_MS));
