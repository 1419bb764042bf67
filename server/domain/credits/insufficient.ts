// The fault for insufficient credit.
import type { Shortage } from '../../engines/store/rows/credits.ts';
import { fault } from '../faults.ts';

export const insufficientCredit = ({ required, available }: Shortage) =>
  fault('insufficient_credit', `The account has ${available} micro-credits available, but ${required} are required.`, {
    advice: 'Nothing was done. An owner of the application can buy credit, or ask the operator for credit.',
    details: { required, available, unit: 'microcredit' },
  });
