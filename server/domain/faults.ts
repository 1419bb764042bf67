// The faults that several parts of the domain throw, typed by the error catalogue. A fault that only one part throws is
// defined in that part.
import type { Issue } from '../../contract/common.ts';
import type { ErrorCode } from '../../contract/errors.ts';
import type { DiskRoom } from '../engines/slots/slots.ts';
import { Fault, type FaultOptions } from '../kit/fault.ts';
import type { ApplicationId } from '../kit/ids.ts';

/** Creates a fault whose code is in the catalogue. `new Fault` would accept any string. */
export const fault = (code: ErrorCode, message: string, options?: FaultOptions): Fault<ErrorCode> =>
  new Fault<ErrorCode>(code, message, options);

export const notFound = (kind: string, id: string): Fault<ErrorCode> =>
  fault('not_found', `${kind} ${shorten(id)} does not exist, or you do not have access to it.`, {
    advice: 'Check the id, and check that the credential belongs to the right application.',
  });

const ID_CHARACTERS_SHOWN_MAX = 64;

const shorten = (id: string): string =>
  id.length > ID_CHARACTERS_SHOWN_MAX ? `${id.slice(0, ID_CHARACTERS_SHOWN_MAX)}…` : id;

export const invalidRequest = (issues: readonly Issue[]): Fault<ErrorCode> =>
  fault('invalid_request', issues.map(({ path, message }) => (path ? `${path} ${message}` : message)).join('; '), {
    details: { issues },
  });

/** `status` is the status of the session, or `ending`. The status RUNNING also means that the session is ending. */
export function sessionNotRunning(id: string, status: string): Fault<ErrorCode> {
  const details = { status };
  if (status === 'PENDING')
    return fault('session_not_running', `Session ${id} is not running yet (status PENDING).`, {
      advice: 'Send the request again when the status is RUNNING.',
      details,
    });
  const problem = status === 'RUNNING' || status === 'ending' ? 'is ending' : `is not running (status ${status})`;
  const advice = 'An ended session cannot be resumed: create a new one.';
  return fault('session_not_running', `Session ${id} ${problem}.`, { advice, details });
}

/**
 * Throws if a body names a project that is not the application of the key. Official clients send their project id in
 * the body.
 */
export function assertProject(application: ApplicationId, projectId: string | undefined): void {
  if (projectId !== undefined && projectId.toLowerCase() !== application)
    throw fault('project_mismatch', `projectId ${projectId} is not the application of this agent key.`, {
      advice: 'Omit projectId, or use an agent key of that application.',
    });
}

export const scopeMissing = (scopes: readonly string[]): Fault<ErrorCode> =>
  fault('permission_denied', `This credential lacks the scope ${scopes.join(' or ')}.`, {
    advice: 'Use a credential that has this scope.',
    details: { scopes },
  });

export const roleMissing = (requiredRole: string): Fault<ErrorCode> =>
  fault('permission_denied', `This operation requires the role ${requiredRole} in the application.`, {
    advice: 'Ask an owner of the application for the role.',
    details: { role: requiredRole },
  });

export const noFreeSlot = (slots: number, used: number): Fault<ErrorCode> =>
  fault('capacity', `No browser slot is free (${used} of ${slots} in use). No session was created.`, {
    advice: 'Wait for a session to end, or ask the operator for more slots.',
    details: { slots, used },
  });

/** Returns the fault for a full disk. Undefined if the disk has room for another session. */
export function diskFull({
  freeBytes,
  minFreeBytes: leastBytes,
  freeFiles,
  minFreeFiles: leastFiles,
}: DiskRoom): Fault<ErrorCode> | undefined {
  if (freeBytes < leastBytes)
    return fault(
      'capacity',
      `The disk of this installation is nearly full (${mebibyteText(freeBytes)} free). No session was created.`,
      {
        advice: `Ask the operator to free disk space: a new session needs at least ${mebibyteText(leastBytes)}.`,
        details: { disk: { freeBytes, leastBytes } },
      },
    );
  if (freeFiles < leastFiles)
    return fault(
      'capacity',
      `The disk of this installation has almost no inodes left (${freeFiles} free). No session was created.`,
      {
        advice: `Ask the operator to remove files: a new session needs at least ${leastFiles} free inodes.`,
        details: { disk: { freeFiles, leastFiles } },
      },
    );
  return undefined;
}

const mebibyteText = (bytes: number): string => `${Math.floor(bytes / 1024 ** 2)} MiB`;

export const limitReached = (
  kind: string,
  limit: number,
  advice = 'Delete one that is no longer needed.',
): Fault<ErrorCode> =>
  fault('limit_reached', `There are already ${limit} ${kind}, which is the limit.`, {
    advice,
    details: { limit },
  });

export const REVOKE_ADVICE = 'Revoke one that is no longer needed.';

export const preconditionRequired = (): Fault<ErrorCode> =>
  fault('precondition_required', 'The header If-Match is missing.', {
    advice: 'Read the resource first, and send its ETag as If-Match.',
  });

export const malformedRevision = (revision: number): Fault<ErrorCode> =>
  fault('precondition_failed', 'If-Match is not an ETag of this resource.', {
    advice: 'Read the resource, and send its ETag exactly as it was returned, with the quotation marks.',
    details: { revision },
  });

export const nothingToMatch = (): Fault<ErrorCode> =>
  fault('precondition_failed', 'The resource does not exist, so If-Match cannot match.', {
    advice: 'Omit If-Match to create it.',
  });

export const preconditionFailed = (revision?: number): Fault<ErrorCode> =>
  fault('precondition_failed', 'The resource has changed since you read it.', {
    advice: 'Read the resource again, and send the change with the new ETag in If-Match.',
    ...(revision === undefined ? {} : { details: { revision } }),
  });
