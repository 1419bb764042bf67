// Tabs with arrow key navigation. Each panel is labeled by its tab.
import { Tabs as Base } from '@base-ui/react/tabs';
import type { ReactNode } from 'react';

export interface Tab {
  readonly id: string;
  readonly name: ReactNode;
  readonly panel: ReactNode;
}

export const Tabs = ({
  label,
  tabs,
  value,
  onChange,
}: {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly value: string;
  readonly onChange: (id: string) => void;
}) => (
  <Base.Root value={value} onValueChange={next => onChange(String(next))}>
    <Base.List
      aria-label={label}
      className="flex gap-5 overflow-x-auto border-b border-line px-4 [scrollbar-width:none]"
    >
      {tabs.map(({ id, name }) => (
        <Base.Tab
          key={id}
          value={id}
          className="-mb-px h-11 shrink-0 border-b-2 border-transparent text-sm text-soft transition-colors -outline-offset-2 hover:text-ink aria-selected:border-accent aria-selected:font-medium aria-selected:text-ink"
        >
          {name}
        </Base.Tab>
      ))}
    </Base.List>
    {tabs.map(({ id, panel }) => (
      <Base.Panel key={id} value={id} className="outline-offset-[-2px]">
        {panel}
      </Base.Panel>
    ))}
  </Base.Root>
);
