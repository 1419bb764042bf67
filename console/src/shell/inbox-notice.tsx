// A notice, on every page except the inbox, that something new is waiting for the user.
import { Link, useLocation } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { totalWaitingCount, useInbox } from '../api/live-inbox.ts';
import { IconButton } from '../ui/button.tsx';
import { Icon } from '../ui/icon.tsx';

/** Reports only items that arrived after the page was opened. The navigation shows the count of all waiting items. */
export function InboxNotice() {
  const inbox = useInbox();
  const isInbox = useLocation().pathname.endsWith('/inbox');
  const count = totalWaitingCount(inbox);
  const [seenCount, setSeenCount] = useState<number | undefined>();
  useEffect(() => {
    if (!inbox) return;
    // If the count has decreased, it is stored again, so that the next item counts as new.
    setSeenCount(previousCount =>
      previousCount === undefined || isInbox || count < previousCount ? count : previousCount,
    );
  }, [inbox, count, isInbox]);
  const newCount = seenCount === undefined || isInbox ? 0 : count - seenCount;
  const app = inbox?.applications[0]?.applicationId;
  return (
    <div
      role="status"
      className="pointer-events-none fixed inset-x-3 bottom-3 z-30 md:inset-x-auto md:right-5 md:bottom-5"
    >
      {newCount > 0 && app !== undefined && (
        <div className="pointer-events-auto flex items-center gap-2 rounded-lg border border-accent bg-raised py-1.5 pr-1.5 pl-3 text-sm shadow-2xl">
          <span className="text-accent">
            <Icon name="inbox" />
          </span>
          <span className="mr-1">
            {newCount === 1 ? 'An agent is waiting for you.' : `${newCount} requests from agents are waiting for you.`}
          </span>
          <Link to="/inbox" className="ml-auto rounded-md px-2 py-1 font-medium text-accent hover:bg-sunk">
            Open inbox
          </Link>
          <IconButton label="Dismiss" icon="close" onClick={() => setSeenCount(count)} />
        </div>
      )}
    </div>
  );
}
