// An address at which there is no page.
import { Link } from '@tanstack/react-router';
import { buttonClass } from '../ui/button.tsx';
import { Empty } from '../ui/states.tsx';

export const MissingPage = () => (
  <Empty
    icon="search"
    title="There is no page here"
    action={
      <Link to="/" className={buttonClass('plain')}>
        To the sessions
      </Link>
    }
  >
    The address may be of an older console, or mistyped.
  </Empty>
);
