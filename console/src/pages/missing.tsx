// The page for unknown addresses.
import { Link } from '@tanstack/react-router';
import { buttonClass } from '../ui/button.tsx';
import { EmptyState } from '../ui/states.tsx';

export const MissingPage = () => (
  <EmptyState
    icon="search"
    title="Page not found"
    action={
      <Link to="/" className={buttonClass('plain')}>
        Go to the overview
      </Link>
    }
  >
    The address may be outdated or mistyped.
  </EmptyState>
);
