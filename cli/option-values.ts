// Reads the values of options from the arguments of a command line.
import { InvalidArgumentError } from 'commander';

export function readTime(text: string): Date {
  const time = new Date(text);
  if (Number.isNaN(time.getTime()) || !/^\d{4}-\d\d-\d\d/.test(text))
    throw new InvalidArgumentError('expected a time such as 2027-01-31 or 2027-01-31T12:00:00Z');
  return time;
}

export function readCount(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('expected a whole number of at least 1');
  return Number(text);
}

export function readPageNumber(text: string): number {
  if (!/^(-1|\d{1,9})$/.test(text))
    throw new InvalidArgumentError('expected a page number from 0, or -1 for entries that belong to no page');
  return Number(text);
}

/** Adds a `KEY=VALUE` pair to the pairs of earlier options. */
export function readPair(text: string, earlierPairs: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('expected KEY=VALUE');
  return { ...earlierPairs, [name]: value };
}

const CREDITS_MAX = 1_000_000_000;

/** Parses credits with up to six decimals, and returns micro-credits. */
export function readCredits(text: string): number {
  const [, whole, decimals = ''] = /^(\d{1,10})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  const amount = whole === undefined ? 0 : Number(whole) * 1_000_000 + Number(decimals.padEnd(6, '0'));
  if (amount < 1 || amount > CREDITS_MAX * 1_000_000)
    throw new InvalidArgumentError(`expected credits from 0.000001 to ${CREDITS_MAX}, such as 50 or 0.25`);
  return amount;
}
