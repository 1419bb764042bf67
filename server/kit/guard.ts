// Guards the entrances where bytes from a page, client, browser or other server arrive. An error while they are handled
// is passed to the code that opened the entrance, which decides what to close. `npm run check` has a list of the
// entrances (tools/entrances.ts).

export type OnFailure = (error: unknown) => void;

/**
 * Wraps a listener so that it never throws and leaves no unhandled rejection. `failed` gets the error and the
 * arguments.
 */
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
