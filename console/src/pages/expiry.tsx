// A choice of expiry times for a credential.
import { SelectField } from '../ui/form.tsx';

const DAY_MS = 86_400_000;

const EXPIRIES = { '1': '1 day', '30': '30 days', '90': '90 days', '365': '1 year' } as const;

/** `days` is the number of days, or an empty string for no expiry. */
export const expiresAtOf = (days: string): { expiresAt?: string } =>
  days === '' ? {} : { expiresAt: new Date(Date.now() + Number(days) * DAY_MS).toISOString() };

export const ExpiryField = ({
  value,
  onChange,
  allowsNoExpiry = false,
}: {
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Whether the credential may be issued without an expiry. */
  readonly allowsNoExpiry?: boolean;
}) => (
  <SelectField label="Expires" value={value} onChange={event => onChange(event.target.value)}>
    {allowsNoExpiry && <option value="">Never</option>}
    {Object.entries(EXPIRIES).map(([days, words]) => (
      <option key={days} value={days}>
        In {words}
      </option>
    ))}
  </SelectField>
);
