// Asks for a recent proof of identity if the service requires one (RFC 9470). The request waits until the dialog is
// closed.

export const NEEDS_STEP_UP = 'insufficient_user_authentication';

let pendingStepUp: PromiseWithResolvers<void> | undefined;
const watching = new Set<() => void>();

export const isStepUpPending = (): boolean => pendingStepUp !== undefined;

export function onStepUp(listener: () => void): () => void {
  watching.add(listener);
  return () => watching.delete(listener);
}

/** Asks for the proof. Resolves when the person has given it, and rejects when the person closes the dialog. */
export function stepUp(): Promise<void> {
  const asked = pendingStepUp ?? Promise.withResolvers<void>();
  pendingStepUp = asked;
  notify();
  return asked.promise;
}

/** Called when the dialog is closed, with or without the proof. */
export function endStepUp(hasProof: boolean): void {
  const asked = pendingStepUp;
  pendingStepUp = undefined;
  if (hasProof) asked?.resolve();
  else asked?.reject(new Error('Nothing was changed, because you did not confirm your identity.'));
  notify();
}

const notify = (): void => {
  for (const listener of watching) listener();
};
