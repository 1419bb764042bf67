// The editor for a snippet, with a list of examples and of the snippets that the user has saved. Tab moves the focus,
// as in any text field.
import { useId, useState } from 'react';
import { Button } from '../ui/button.tsx';
import { Panel } from '../ui/page.tsx';
import { EXAMPLES, forgetSnippet, readSnippets, saveSnippet } from './snippets.ts';

export function SnippetEditor({ code, change }: { readonly code: string; readonly change: (code: string) => void }) {
  const id = useId();
  const [savedSnippets, setSavedSnippets] = useState(readSnippets);
  const [name, setName] = useState('');
  const choose = (chosenName: string): void => {
    const snippet = [...savedSnippets, ...EXAMPLES].find(({ name }) => name === chosenName);
    if (!snippet) return;
    change(snippet.code);
    setName(savedSnippets.includes(snippet) ? snippet.name : '');
  };
  const isSaved = savedSnippets.some(snippet => snippet.name === name);
  const currentName = [...savedSnippets, ...EXAMPLES].find(snippet => snippet.code === code)?.name ?? '';
  return (
    <Panel
      title="Snippet"
      actions={
        <select
          aria-label="Snippets"
          value={currentName}
          onChange={event => choose(event.target.value)}
          className="h-8 max-w-48 min-w-0 rounded-md border border-line-strong bg-raised px-2 text-sm"
        >
          {currentName === '' && <option value="">changed</option>}
          {savedSnippets.length > 0 && (
            <optgroup label="Kept in this browser">
              {savedSnippets.map(snippet => (
                <option key={snippet.name}>{snippet.name}</option>
              ))}
            </optgroup>
          )}
          <optgroup label="Examples">
            {EXAMPLES.map(example => (
              <option key={example.name}>{example.name}</option>
            ))}
          </optgroup>
        </select>
      }
    >
      <label htmlFor={id} className="sr-only">
        Code of the snippet
      </label>
      <textarea
        id={id}
        value={code}
        rows={14}
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        onChange={event => change(event.target.value)}
        className="block w-full resize-y border-b border-line bg-sunk p-4 font-mono text-xs leading-relaxed -outline-offset-2"
      />
      <div className="flex flex-wrap items-center gap-2 px-4 py-2.5">
        <input
          aria-label="Name of the snippet"
          placeholder="Name"
          maxLength={60}
          value={name}
          onChange={event => setName(event.target.value)}
          className="h-9 w-40 min-w-0 grow rounded-md border border-line-strong bg-raised px-2.5 text-sm md:h-8"
        />
        <Button
          disabled={name.trim() === ''}
          onClick={() => setSavedSnippets(saveSnippet({ name: name.trim(), code }))}
        >
          Keep
        </Button>
        {isSaved && (
          <Button
            onClick={() => {
              setSavedSnippets(forgetSnippet(name));
              setName('');
            }}
          >
            Forget
          </Button>
        )}
      </div>
    </Panel>
  );
}
