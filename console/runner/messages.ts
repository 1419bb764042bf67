// Messages between the playground and its runner.
export interface RunRequest {
  readonly connectUrl: string;
  readonly code: string;
}

export type RunnerMessage =
  | { readonly kind: 'line'; readonly level: 'log' | 'info' | 'warn' | 'error' | 'debug'; readonly text: string }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly text: string };
