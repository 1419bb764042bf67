// A keyboard shortcut for the whole page. Ignored while the user is typing.
import { useEffect, useRef } from 'react';

const TYPED_INTO = 'input, textarea, select, [contenteditable]';

/** `ctrl`: with Control, or Command on a Mac. Such a shortcut also works while typing. */
export function useShortcut(key: string, action: () => void, { ctrl = false }: { readonly ctrl?: boolean } = {}): void {
  const newest = useRef(action);
  newest.current = action;
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== key || event.isComposing || event.altKey) return;
      if ((event.ctrlKey || event.metaKey) !== ctrl) return;
      const typing = event.target instanceof Element && event.target.closest(TYPED_INTO) !== null;
      if ((typing && !ctrl) || (!ctrl && document.querySelector('[role="dialog"]'))) return;
      event.preventDefault();
      newest.current();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [key, ctrl]);
}
