// Where bytes of a page, client, browser or other server enter. What their handling throws, or rejects with, ends at the
// entrance: whoever opened it decides what ends with it. `npm run check` knows the entrances (tools/entrances.ts).

export type OnFailure = (error: unknown) => void;

/** The same listener, which never throws and leaves no rejected promise behind. */
export function guarded<Said extends readonly unknown[]>(
  failed: OnFailure,
  listener: (...said: Said) => unknown,
): (...said: Said) => void {
  return (...said) => {
    try {
      const outcome = listener(...said);
      if (outcome instanceof Promise) outcome.catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}
