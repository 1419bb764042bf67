// Chooses the columns of the list of sessions.
import { Popover } from '@base-ui/react/popover';
import { buttonClass } from '../ui/button.tsx';
import { Icon } from '../ui/icon.tsx';
import { COLUMNS, hideColumns, OPTIONAL_COLUMNS, type OptionalColumn, useHiddenColumns } from './session-columns.ts';

export function ColumnMenu() {
  const hiddenColumns = useHiddenColumns();
  const setVisible = (column: OptionalColumn, isVisible: boolean): void => {
    const newHiddenColumns = new Set(hiddenColumns);
    if (isVisible) newHiddenColumns.delete(column);
    else newHiddenColumns.add(column);
    hideColumns(newHiddenColumns);
  };
  return (
    <Popover.Root>
      <Popover.Trigger className={`${buttonClass('plain')} max-md:hidden`}>
        Columns
        <Icon name="down" size={16} />
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Positioner sideOffset={6} align="end" className="z-40">
          <Popover.Popup aria-label="Columns" className="rounded-lg border border-line bg-raised p-2 shadow-xl">
            <fieldset>
              <legend className="sr-only">Columns of the list</legend>
              {OPTIONAL_COLUMNS.map(column => (
                <label key={column} className="flex h-8 items-center gap-2.5 rounded px-2 pr-6 text-sm hover:bg-sunk">
                  <input
                    type="checkbox"
                    checked={!hiddenColumns.has(column)}
                    onChange={event => setVisible(column, event.target.checked)}
                    className="size-4 accent-accent"
                  />
                  {COLUMNS[column].name}
                </label>
              ))}
            </fieldset>
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}
