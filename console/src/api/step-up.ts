// Asks for a recent proof of identity if the service requires one (RFC 9470). The request waits until the dialog is
// closed.

export const NEEDS_STEP_UP = 'insufficient_user_authentication';

let waiting: PromiseWithResolvers<void> | undefined;
const watching = new Set<() => void>();

export const isStepUpPending = (): boolean => waiting !== undefined;

export function onStepUp(listener: () => void): () => void {
  watching.add(listener);
  return () => watching.delete(listener);
}

/** Asks for the proof. Resolves when the person has given it, and rejects when the person closes the dialog. */
export function stepUp(): Promise<void> {
  const asked = waiting ?? Promise.withResolvers<void>();
  waiting = asked;
  tell();
  return asked.promise;
}

/** Called when the dialog is closed, with or without the proof. */
export function endStepUp(given: boolean): void {
  const asked = waiting;
  waiting = undefined;
  if (given) asked?.resolve();
  else asked?.reject(new Error('Nothing was changed, because you did not confirm your identity.'));
  tell();
}

const tell = (): void => {
  for (const listener of watching) listener();
};
