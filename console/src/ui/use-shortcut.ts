// A keyboard shortcut for the whole page. A shortcut without Control or Command is ignored while the user is typing or
// a dialog is open.
import { useEffect, useRef } from 'react';

const TEXT_CONTROLS = 'input, textarea, select, [contenteditable]';

/** `ctrl`: the key is pressed together with Control or Command. */
export function useShortcut(key: string, action: () => void, { ctrl = false }: { readonly ctrl?: boolean } = {}): void {
  const latestAction = useRef(action);
  latestAction.current = action;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== key || event.isComposing || event.altKey) return;
      if ((event.ctrlKey || event.metaKey) !== ctrl) return;
      const isTyping = event.target instanceof Element && event.target.closest(TEXT_CONTROLS) !== null;
      if ((isTyping && !ctrl) || (!ctrl && document.querySelector('[role="dialog"]'))) return;
      event.preventDefault();
      latestAction.current();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [key, ctrl]);
}
