// Guards the listeners that receive bytes from a page, client, browser or other server. An error in such a listener is
// passed to the code that added it, which decides what to close. `npm run check` requires the guard
// (tools/entrances.ts).

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
