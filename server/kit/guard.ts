// Guards the entrances where bytes from a page, client, browser or other server arrive. An error while they are handled
// is passed to the code that opened the entrance, which decides what to close. `npm run check` has a list of the
// entrances (tools/entrances.ts).

export type OnFailure = (error: unknown) => void;

/**
 * Wraps a listener so that it never throws and leaves no unhandled rejection. `onError` gets the error and the
 * arguments of the call.
 */
export function guardListener<Args extends readonly unknown[]>(
  onError: (error: unknown, args: Args) => void,
  listener: (...args: Args) => unknown,
): (...args: Args) => void {
  return (...args) => {
    try {
      const outcome = listener(...args);
      if (outcome instanceof Promise) outcome.catch(error => onError(error, args));
    } catch (error) {
      onError(error, args);
    }
  };
}
