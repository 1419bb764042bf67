// The body of every error response, to HTTP requests and to refused WebSocket upgrades.
import { STATUS_CODES } from 'node:http';
import type { ErrorBody } from '../../contract/common.ts';
import type { ErrorCode } from '../../contract/errors.ts';
import type { Fault } from '../kit/fault.ts';

export const errorBody = (status: number, fault: Fault, code: ErrorCode, requestId: string): ErrorBody => ({
  statusCode: status,
  error: STATUS_CODES[status] ?? 'Error',
  message: fault.message,
  code,
  requestId,
  ...(fault.details ? { details: fault.details as NonNullable<ErrorBody['details']> } : {}),
});
