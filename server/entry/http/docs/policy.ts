// The Content-Security-Policy of our own pages: nothing from elsewhere, and inline only what we wrote.
import { createHash } from 'node:crypto';

export function policyFor({ style, script }: { readonly style: string; readonly script?: string }): string {
  const parts = [
    "default-src 'none'",
    `style-src ${hashed(style)}`,
    ...(script === undefined ? [] : [`script-src ${hashed(script)}`]),
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return parts.join('; ');
}

const hashed = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
