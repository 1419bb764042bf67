// Where bytes of a page, client, browser or other server enter. What their handling throws, or rejects with, ends at the
// entrance: whoever opened it decides what ends with it. `npm run check` knows the entrances (tools/entrances.ts).

export type OnFailure = (error: unknown) => void;

/** The same listener, which never throws and leaves no rejected promise behind. `failed` gets the error and what was said. */
export function guarded<Said extends readonly unknown[]>(
  failed: (error: unknown, said: Said) => void,
  listener: (...said: Said) => unknown,
): (...said: Said) => void {
  return (...said) => {
    try {
      const outcome = listener(...said);
      if (outcome instanceof Promise) outcome.catch(error => failed(error, said));
    } catch (error) {
      failed(error, said);
    }
  };
}
