// Runs snippets, each in a frame of its own. The frame is removed afterwards, which ends everything that the snippet
// started.
import { useCallback, useEffect, useRef, useState } from 'react';
import type { RunnerMessage, RunRequest } from '../../runner/messages.ts';

const RUNNER_PATH = '/console/runner/index.html';
export const LINES_MAX = 500;

export interface Line {
  readonly id: number;
  readonly level: 'log' | 'info' | 'warn' | 'error' | 'debug';
  readonly text: string;
}

export interface Runner {
  readonly lines: readonly Line[];
  readonly isRunning: boolean;
  /** How the last run ended, in words. Empty until it has ended. */
  readonly endText: string;
  /** Returns the number of the run. Calls of `run` and `fail` for an earlier run, or a stopped one, have no effect. */
  begin(): number;
  run(number: number, request: RunRequest): void;
  fail(number: number, text: string): void;
  stop(): void;
}

export function useRunner(): Runner {
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [isRunning, setIsRunning] = useState(false);
  const [endText, setEndText] = useState('');
  const frame = useRef<HTMLIFrameElement>(undefined);
  const currentRun = useRef(0);
  const removeFrame = useCallback(() => {
    frame.current?.remove();
    frame.current = undefined;
  }, []);
  useEffect(() => removeFrame, [removeFrame]);

  const addLine = (line: Omit<Line, 'id'>): void =>
    setLines(previous => [...previous, { ...line, id: (previous.at(-1)?.id ?? 0) + 1 }].slice(-LINES_MAX));
  const endRun = (outcomeText: string): void => {
    currentRun.current += 1;
    removeFrame();
    setIsRunning(false);
    setEndText(outcomeText);
  };
  const fail = (text: string): void => {
    addLine({ level: 'error', text });
    endRun('The snippet failed.');
  };
  const runIfCurrent = (number: number, work: () => void): void => {
    if (number === currentRun.current) work();
  };
  return {
    ...{ lines, isRunning, endText },
    begin: () => {
      setLines([]);
      setEndText('');
      setIsRunning(true);
      currentRun.current += 1;
      return currentRun.current;
    },
    run: (number, request) =>
      runIfCurrent(number, () => {
        removeFrame();
        frame.current = openFrame(request, message =>
          runIfCurrent(number, () => {
            if (message.kind === 'line') addLine(message);
            else if (message.kind === 'failed') fail(message.text);
            else endRun('The snippet is done.');
          }),
        );
      }),
    fail: (number, text) => runIfCurrent(number, () => fail(text)),
    stop: () => endRun('The snippet was stopped.'),
  };
}

function openFrame(request: RunRequest, onMessage: (message: RunnerMessage) => void): HTMLIFrameElement {
  const frame = document.createElement('iframe');
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = ({ data }: MessageEvent<RunnerMessage>) => onMessage(data);
  frame.setAttribute('sandbox', 'allow-scripts');
  frame.title = 'Snippet runner';
  frame.hidden = true;
  frame.src = RUNNER_PATH;
  // The frame has an opaque origin, which cannot be given as the target of `postMessage`. The listener runs once, so
  // only the document that was loaded from this address gets the port. If a snippet navigates its frame, the next
  // document gets nothing.
  frame.addEventListener('load', () => frame.contentWindow?.postMessage(request, '*', [port2]), { once: true });
  document.body.append(frame);
  return frame;
}
