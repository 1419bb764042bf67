// Buttons, and links styled as buttons.
import type { ComponentProps } from 'react';
import { Icon, type IconName } from './icon.tsx';

type Variant = 'primary' | 'plain' | 'quiet' | 'danger';

const BASE =
  'inline-flex items-center justify-center gap-1.5 rounded-md text-sm font-medium whitespace-nowrap select-none transition-colors disabled:opacity-50 disabled:cursor-not-allowed h-9 md:h-8';

const VARIANT_CLASSES: Readonly<Record<Variant, string>> = {
  primary: 'px-3 bg-accent text-on-accent hover:bg-accent-strong',
  plain: 'px-3 border border-line-strong bg-raised text-ink hover:bg-sunk',
  quiet: 'px-2 text-soft hover:bg-sunk hover:text-ink',
  danger: 'px-3 border border-line-strong bg-raised text-bad hover:bg-bad-soft hover:border-bad',
};

export const buttonClass = (variant: Variant = 'plain'): string => `${BASE} ${VARIANT_CLASSES[variant]}`;

interface Props extends ComponentProps<'button'> {
  readonly look?: Variant;
  readonly icon?: IconName;
  /** Shows that an operation is in progress, and disables the button. */
  readonly busy?: boolean;
}

export const Button = ({
  look = 'plain',
  icon,
  busy = false,
  className = '',
  children,
  disabled,
  type = 'button',
  ...rest
}: Props) => (
  <button
    type={type}
    className={`${buttonClass(look)} ${className}`}
    disabled={disabled || busy}
    aria-busy={busy || undefined}
    {...rest}
  >
    {icon && <Icon name={icon} size={16} />}
    {children}
  </button>
);

/** A button with only an icon. `label` is its accessible name. */
export const IconButton = ({
  label,
  icon,
  className = '',
  ...rest
}: Omit<ComponentProps<'button'>, 'aria-label'> & { readonly label: string; readonly icon: IconName }) => (
  <button
    type="button"
    aria-label={label}
    title={label}
    className={`inline-flex size-9 md:size-8 shrink-0 items-center justify-center rounded-md text-soft transition-colors hover:bg-sunk hover:text-ink ${className}`}
    {...rest}
  >
    <Icon name={icon} />
  </button>
);
