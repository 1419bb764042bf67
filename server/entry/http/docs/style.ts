// How the reference looks: one sheet, light and dark, from phone to desk.

export const STYLE = `
:root {
  --paper: #fcfcfa; --raised: #ffffff; --sunk: #f3f4f1; --line: #e3e5e0; --line-strong: #cfd3cc;
  --ink: #1b2326; --soft: #566167; --faint: #667177;
  --accent: #0b6477; --accent-soft: #e2f0f2;
  --code-paper: #10191d; --code-ink: #dbe4e7; --code-line: #10191d; --code-soft: #8fa3ab;
  --code-key: #8fd3e0; --code-string: #b9dca0; --code-number: #efc08a; --code-word: #c9b4f2;
  --get: #0b6477; --post: #3a5a9b; --patch: #8a5a00; --delete: #a8322d;
  --good: #1b7045; --bad: #8d4a12;
  --sans: Inter, "Segoe UI", system-ui, -apple-system, Roboto, "Helvetica Neue", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", "JetBrains Mono", Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0e1417; --raised: #141c20; --sunk: #182125; --line: #243036; --line-strong: #33424a;
    --ink: #e4eaec; --soft: #a3b1b7; --faint: #8c9ba2;
    --accent: #74c7d6; --accent-soft: #17313a;
    --code-paper: #0a0f12; --code-ink: #d5dfe2; --code-line: #243036; --code-soft: #8ba0a8;
    --get: #74c7d6; --post: #9db8f0; --patch: #e5b769; --delete: #f09a92;
    --good: #7fd0a3; --bad: #e8ab75;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 24px; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.6 var(--sans); -webkit-font-smoothing: antialiased; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
p { margin: 0 0 12px; max-width: 68ch; }
code { font: 0.875em/1.5 var(--mono); }
p code, dd code, td code { background: var(--sunk); border-radius: 4px; padding: 1px 5px; overflow-wrap: anywhere; }
a code { color: inherit; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 16px; top: 16px; z-index: 9; background: var(--raised); padding: 8px 12px; }

.brand { display: flex; align-items: center; gap: 10px; color: var(--ink); font-weight: 650; font-size: 17px; letter-spacing: -0.01em; }
.brand:hover { text-decoration: none; }
.brand small { margin-left: auto; font-weight: 400; font-size: 12px; letter-spacing: 0; color: var(--faint); }
.mark { width: 24px; height: 24px; fill: none; stroke: var(--accent); stroke-width: 1.8; stroke-linecap: round; stroke-linejoin: round; }
.mark .hull { fill: var(--accent-soft); }

.top { display: none; }
.frame { display: grid; grid-template-columns: 272px minmax(0, 1fr); max-width: 1520px; margin: 0 auto; }
.side { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 28px 20px 24px 28px; border-right: 1px solid var(--line); scrollbar-width: thin; scrollbar-color: var(--line-strong) transparent; }
.side .brand { margin-bottom: 24px; }
.contents, .contents ul { list-style: none; margin: 0; padding: 0; }
.contents > li { margin-bottom: 2px; }
.contents .group { display: block; padding: 5px 10px; margin-left: -10px; border-radius: 6px; font-size: 13px; font-weight: 600; color: var(--ink); }
.contents ul { margin: 2px 0 14px; }
.contents ul a { display: grid; grid-template-columns: 38px 1fr; align-items: baseline; gap: 8px; padding: 4px 10px; margin-left: -10px; border-radius: 6px; font-size: 13.5px; line-height: 1.45; color: var(--soft); }
.contents a:hover { background: var(--sunk); color: var(--ink); text-decoration: none; }
.contents a[aria-current] { background: var(--accent-soft); color: var(--accent); }
.foot { margin: 20px 0 0; font-size: 12px; color: var(--faint); }

.method { font: 600 10.5px/1.6 var(--mono); letter-spacing: 0.02em; }
.method.get { color: var(--get); } .method.post { color: var(--post); }
.method.patch, .method.put { color: var(--patch); } .method.delete { color: var(--delete); }

main { min-width: 0; padding: 56px 48px 120px; }
h1, h2, h3, h4 { margin: 0; line-height: 1.25; letter-spacing: -0.015em; font-weight: 650; text-wrap: balance; }
h1 { font-size: 34px; letter-spacing: -0.025em; max-width: 22ch; }
h2 { font-size: 25px; }
h3 { font-size: 19px; }
h4 { font-size: 13px; letter-spacing: 0; margin: 28px 0 8px; padding-bottom: 8px; border-bottom: 1px solid var(--line); }
h3 .self { color: inherit; }

.lede { font-size: 17px; line-height: 1.6; color: var(--soft); margin: 16px 0 20px; max-width: 62ch; }
.base { display: inline-flex; align-items: baseline; gap: 12px; margin: 0 0 28px; padding: 7px 14px; border: 1px solid var(--line); border-radius: 8px; background: var(--raised); max-width: 100%; }
.base span { font-size: 12.5px; color: var(--faint); white-space: nowrap; }
.base code { background: none; padding: 0; }
.steps { list-style: none; counter-reset: step; margin: 0; padding: 0; display: grid; gap: 28px; max-width: 1040px; }
.steps li { counter-increment: step; display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 2fr); gap: 12px 36px; position: relative; }
.steps h3 { font-size: 16px; margin: 2px 0 6px; display: flex; align-items: center; gap: 10px; }
.steps h3::before { content: counter(step); display: inline-grid; place-items: center; width: 24px; height: 24px; border-radius: 50%; background: var(--accent-soft); color: var(--accent); font-size: 12.5px; }
.steps p { margin: 0; color: var(--soft); font-size: 14.5px; }

.tag { margin-top: 88px; }
.tag > header { margin-bottom: 8px; }
.tag > header p { color: var(--soft); margin: 6px 0 0; }
.operation { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 432px); gap: 48px; padding: 36px 0 44px; border-top: 1px solid var(--line); margin-top: 28px; scroll-margin-top: 0; }
.operation + .operation { margin-top: 0; }
.examples { position: sticky; top: 24px; align-self: start; display: grid; gap: 16px; min-width: 0; }
.route { display: flex; align-items: baseline; gap: 10px; margin: 10px 0 14px; }
.route .method { font-size: 12px; }
.path { font-size: 13.5px; background: none !important; padding: 0 !important; overflow-wrap: normal !important; }
.path var { font-style: normal; color: var(--accent); }

.facts { display: grid; gap: 6px; margin: 16px 0 0; padding: 12px 16px; border-radius: 8px; background: var(--sunk); font-size: 13.5px; }
.facts div { display: grid; grid-template-columns: 92px minmax(0, 1fr); gap: 12px; }
.facts dt { color: var(--faint); }
.facts dd { margin: 0; }
.facts dd code { background: none; padding: 0; font-size: 12.5px; }

.fields { margin: 0; }
.field { padding: 12px 0; border-bottom: 1px solid var(--line); }
.field:last-child { border-bottom: 0; padding-bottom: 4px; }
.field dt { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 10px; }
.field dd { margin: 3px 0 0; }
.field dd p { margin: 0; font-size: 14px; color: var(--soft); }
.name { font-weight: 600; font-size: 13.5px; color: var(--ink); }
.type, .default { font-size: 12.5px; color: var(--faint); overflow-wrap: anywhere; }
.default code { font-size: 12px; background: var(--sunk); border-radius: 4px; padding: 1px 5px; }
.required { font-size: 12px; font-weight: 600; color: var(--bad); }
.nested { margin-top: 10px; border: 1px solid var(--line); border-radius: 8px; background: var(--raised); }
summary { cursor: pointer; list-style: none; }
summary::-webkit-details-marker { display: none; }
.nested > summary { padding: 7px 14px; font-size: 13px; color: var(--accent); }
.nested > summary::before, .errors > summary::before { content: ""; display: inline-block; width: 6px; height: 6px; margin: 0 9px 2px 1px; border: solid currentColor; border-width: 0 1.5px 1.5px 0; transform: rotate(-45deg); transition: transform 0.12s; }
.nested[open] > summary::before, .errors[open] > summary::before { transform: rotate(45deg); }
.nested[open] > summary { border-bottom: 1px solid var(--line); }
.nested > .fields { padding: 0 14px 6px; }

.answer { margin-top: 12px; }
.answer p { margin: 0 0 6px; }
.answer .header { font-size: 14px; color: var(--soft); }
.status { font: 600 12px/1 var(--mono); padding: 3px 6px; border-radius: 5px; background: var(--sunk); color: var(--bad); }
.status.ok { color: var(--good); }
.answer .status { margin-right: 6px; }

.errors { margin-top: 24px; border: 1px solid var(--line); border-radius: 8px; background: var(--raised); }
.errors > summary { display: flex; align-items: baseline; padding: 9px 14px; font-size: 13px; color: var(--accent); white-space: nowrap; overflow: hidden; }
.errors > summary::before { flex: none; align-self: center; }
.errors .codes { margin-left: 14px; font: 11.5px/1.6 var(--mono); color: var(--faint); overflow: hidden; text-overflow: ellipsis; }
.errors[open] .codes { display: none; }
.errors[open] > summary { border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
.errors table { margin: 2px 0; }
td, th { padding: 10px 14px; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
td:first-child { width: 1%; }
td:nth-child(2) { white-space: nowrap; width: 1%; }
td code { background: none; padding: 0; }
.errors table, .errors tbody, .errors tr, .errors td { display: block; width: auto; }
.errors tr { padding: 11px 14px; border-bottom: 1px solid var(--line); }
.errors tr:last-child { border-bottom: 0; }
.errors td { padding: 0; border: 0; white-space: normal; }
.errors td:nth-child(-n+2) { display: inline-block; margin: 0 8px 3px 0; }
.cure { color: var(--soft); }
th { font-size: 12px; font-weight: 600; color: var(--faint); }
.catalogue { margin-top: 20px; }
.catalogue td:first-child, .catalogue th:first-child { padding-left: 0; }
.catalogue tr:target td { background: var(--accent-soft); }

.rules { margin: 0; display: grid; gap: 20px; }
.rules dt { font-weight: 600; }
.rules dd { margin: 3px 0 0; color: var(--soft); max-width: 68ch; }

.code { margin: 0; border-radius: 10px; background: var(--code-paper); border: 1px solid var(--code-line); color: var(--code-ink); overflow: hidden; display: flex; flex-direction: column; }
figcaption { display: flex; align-items: center; justify-content: space-between; min-height: 38px; padding: 0 8px 0 16px; font-size: 12px; color: var(--code-soft); border-bottom: 1px solid #ffffff14; }
figcaption .status.ok { margin-left: 6px; background: #ffffff14; color: #8fd6ad; }
.copy { font: 12px/1 var(--sans); color: var(--code-soft); background: none; border: 0; padding: 7px 8px; border-radius: 6px; cursor: pointer; }
.copy:hover { color: var(--code-ink); background: #ffffff14; }
pre { margin: 0; padding: 14px 16px 16px; overflow-y: auto; white-space: pre-wrap; overflow-wrap: anywhere; font: 12.5px/1.65 var(--mono); max-height: 520px; scrollbar-width: thin; scrollbar-color: #ffffff30 transparent; tab-size: 2; }
pre code { font: inherit; }
.l { display: block; min-height: 1.65em; padding-left: 4ch; text-indent: -4ch; }
.k { color: var(--code-key); } .s { color: var(--code-string); } .n { color: var(--code-number); } .w { color: var(--code-word); } .c { color: var(--code-soft); }

@media (max-width: 1180px) {
  .operation { grid-template-columns: minmax(0, 1fr); gap: 24px; }
  .examples { position: static; }
}
@media (max-width: 860px) {
  html { scroll-padding-top: 68px; }
  .frame { display: block; }
  .side { display: none; }
  .top { position: sticky; top: 0; z-index: 5; display: flex; align-items: center; gap: 16px; height: 52px; padding: 0 16px; background: var(--paper); border-bottom: 1px solid var(--line); }
  .top .brand { margin-right: auto; }
  .top-link { display: none; }
  .menu > summary { padding: 7px 14px; border: 1px solid var(--line-strong); border-radius: 8px; font-size: 13.5px; }
  .menu nav { position: absolute; left: 0; right: 0; top: 52px; max-height: calc(100vh - 52px); overflow-y: auto; padding: 16px 26px 32px; background: var(--paper); border-bottom: 1px solid var(--line); box-shadow: 0 12px 24px #00000022; }
  .menu .contents ul a { padding-block: 8px; font-size: 15px; }
  .menu .contents .group { padding-block: 8px; font-size: 14px; }
  main { padding: 32px 16px 80px; }
  h1 { font-size: 27px; }
  h2 { font-size: 22px; }
  .lede { font-size: 16px; }
  .steps li { grid-template-columns: minmax(0, 1fr); }
  .tag { margin-top: 64px; }
  .operation { padding: 28px 0 32px; margin-top: 20px; }
  .facts div { grid-template-columns: 80px minmax(0, 1fr); }
  .catalogue, .catalogue tbody, .catalogue tr, .catalogue td { display: block; width: auto; }
  .catalogue thead { display: none; }
  .catalogue tr { padding: 12px 0; border-bottom: 1px solid var(--line); }
  .catalogue td { padding: 0; border: 0; white-space: normal; }
  .catalogue td:nth-child(-n+2) { display: inline-block; margin: 0 8px 4px 0; }
  .catalogue td:nth-child(4) { display: none; }
}
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
@media print { .side, .top, .copy { display: none !important; } .frame { display: block; } }
`;
