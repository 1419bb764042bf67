// The page for unknown addresses.
import { Link } from '@tanstack/react-router';
import { buttonClass } from '../ui/button.tsx';
import { Empty } from '../ui/states.tsx';

export const MissingPage = () => (
  <Empty
    icon="search"
    title="Page not found"
    action={
      <Link to="/" className={buttonClass('plain')}>
        Go to the overview
      </Link>
    }
  >
    The address may be outdated or mistyped.
  </Empty>
);
