// Reads the packs of credit that the operator sells. The types of all values are checked; no value is converted.
import { parseJson } from './foreign.ts';
import { isObject } from './json.ts';

export interface Pack {
  readonly id: string;
  /** Whole credits. */
  readonly credits: number;
  /** Additional free credits. */
  readonly bonus: number;
  /** The price in the smallest unit of the currency. */
  readonly price: number;
  /** An ISO 4217 code, which is the same for all packs. */
  readonly currency: string;
}

const PACKS_MAX = 20;
const CREDITS_MAX = 1_000_000_000;
const FIELDS: ReadonlySet<string> = new Set(['id', 'credits', 'bonus', 'price', 'currency']);

/** Returns undefined if any part of the text is invalid. */
export function parseCreditPacks(text: string): readonly Pack[] | undefined {
  const parsedValue = parseJson(text);
  if (!Array.isArray(parsedValue) || parsedValue.length > PACKS_MAX) return undefined;
  const packs = parsedValue.flatMap(value => parsePack(value) ?? []);
  const [ids, currencies] = [new Set(packs.map(({ id }) => id)), new Set(packs.map(({ currency }) => currency))];
  const isValid = packs.length === parsedValue.length && ids.size === packs.length && currencies.size <= 1;
  return isValid ? packs : undefined;
}

function parsePack(value: unknown): Pack | undefined {
  if (!isObject(value) || Object.keys(value).some(name => !FIELDS.has(name))) return undefined;
  const { id, credits, bonus = 0, price, currency } = value;
  if (typeof id !== 'string' || !/^[a-z0-9][a-z0-9_-]{0,31}$/.test(id)) return undefined;
  if (typeof currency !== 'string' || !/^[A-Z]{3}$/.test(currency)) return undefined;
  if (!isWhole(credits, 1, CREDITS_MAX) || !isWhole(bonus, 0, CREDITS_MAX)) return undefined;
  return isWhole(price, 0, Number.MAX_SAFE_INTEGER) ? { id, credits, bonus, price, currency } : undefined;
}

const isWhole = (value: unknown, min: number, max: number): value is number =>
  Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max;
