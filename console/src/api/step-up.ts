// Asks for a recent proof of identity if the service requires one (RFC 9470). The request waits until the dialog is
// closed.

export const NEEDS_STEP_UP = 'insufficient_user_authentication';

let pendingStepUp: PromiseWithResolvers<void> | undefined;
const listeners = new Set<() => void>();

export const isStepUpPending = (): boolean => pendingStepUp !== undefined;

export function onStepUp(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Asks for the proof. Resolves when the person has given it, and rejects when the person closes the dialog. */
export function stepUp(): Promise<void> {
  const currentStepUp = pendingStepUp ?? Promise.withResolvers<void>();
  pendingStepUp = currentStepUp;
  notify();
  return currentStepUp.promise;
}

/** Called when the dialog is closed, with or without the proof. */
export function endStepUp(hasProof: boolean): void {
  const currentStepUp = pendingStepUp;
  pendingStepUp = undefined;
  if (hasProof) currentStepUp?.resolve();
  else currentStepUp?.reject(new Error('Nothing was changed, because you did not confirm your identity.'));
  notify();
}

const notify = (): void => {
  for (const listener of listeners) listener();
};
