// A field for a new password, with the rule for it.
import { TextField } from '../ui/form.tsx';

/** The same value as in contract/sign-in.ts. */
const PASSWORD_CHARACTERS_MIN = 12;

export const NewPasswordField = ({
  label,
  hint = '',
  value,
  change,
}: {
  readonly label: string;
  /** Shown after the rule for passwords. */
  readonly hint?: string;
  readonly value: string;
  readonly change: (value: string) => void;
}) => (
  <TextField
    label={label}
    hint={`At least ${PASSWORD_CHARACTERS_MIN} characters, of any kind. ${hint}`.trim()}
    type="password"
    autoComplete="new-password"
    minLength={PASSWORD_CHARACTERS_MIN}
    value={value}
    onChange={event => change(event.target.value)}
    required
  />
);
