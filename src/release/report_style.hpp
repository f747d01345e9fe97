// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

/// The whole look of a report. No fonts, pictures or scripts from elsewhere; light, dark and print.
inline constexpr const char* kReportStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f6f7f9; --ink: #1c2733; --soft: #5a6876; --rule: #dde2e8; --grid: #e9edf1;
  --accent: #1f5a96; --warm: #b3402f;
  --alarm: #b3121d; --alarm-ink: #ffffff; --caution: #fff7e3; --caution-rule: #d9a521;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12171d; --panel: #1a2129; --ink: #e4e9ee; --soft: #9eabb8; --rule: #2f3944; --grid: #242d36;
    --accent: #7db3e8; --warm: #e88a76;
    --alarm: #c2242f; --alarm-ink: #ffffff; --caution: #2b2515; --caution-rule: #b98d1e;
  }
}
* { box-sizing: border-box; }
html { background: var(--page); -webkit-text-size-adjust: 100%; }
body { margin: 0; color: var(--ink); background: var(--page); overflow-wrap: anywhere;
  font: 16px/1.6 "Segoe UI", "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; }
main { max-width: 50rem; margin: 0 auto; padding: 3.5rem 2rem 4rem; }
h1, h2, h3 { font-family: Georgia, "Times New Roman", "Liberation Serif", serif; font-weight: 600; line-height: 1.25; }
h1 { font-size: 2.3rem; margin: 0.2rem 0 1.4rem; letter-spacing: -0.01em; }
h2 { font-size: 1.4rem; margin: 3.4rem 0 0.9rem; padding-top: 1.1rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 0; }
p { margin: 0 0 1rem; }
.eyebrow { margin: 0; color: var(--soft); font-size: 0.8rem; letter-spacing: 0.1em; text-transform: uppercase; }
.summary { font-size: 1.08rem; }
table + .note, .pictures + .note, .tables + .note { margin-top: 1.2rem; }
.note { color: var(--soft); font-size: 0.92rem; }
.alarm { margin: 1.8rem 0; padding: 1.1rem 1.4rem; background: var(--alarm); color: var(--alarm-ink); border-radius: 4px; }
.alarm strong { display: block; font-size: 1.5rem; letter-spacing: 0.06em; line-height: 1.3; }
.alarm p { margin: 0.3rem 0 0; }
.caution { margin: 1.6rem 0; padding: 0.9rem 1.4rem; background: var(--caution); border-left: 4px solid var(--caution-rule); }
.caution p { margin: 0 0 0.3rem; font-weight: 600; }
.caution ul { margin: 0; padding-left: 1.2rem; }
blockquote { margin: 1.8rem 0; padding: 0.2rem 0 0.2rem 1.4rem; border-left: 4px solid var(--accent);
  font-family: Georgia, "Times New Roman", "Liberation Serif", serif; font-size: 1.1rem; }
blockquote p { margin: 0; }
table { width: 100%; border-collapse: collapse; font-size: 0.95rem; }
caption { text-align: left; color: var(--soft); font-size: 0.92rem; padding-bottom: 0.6rem; }
th, td { padding: 0.5rem 0.9rem 0.5rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--grid); }
th:last-child, td:last-child { padding-right: 0; }
thead th, thead td { border-bottom: 1px solid var(--rule); }
thead th { color: var(--soft); font-weight: 600; font-size: 0.85rem; overflow-wrap: normal; }
tbody th { font-weight: 400; }
.facts th { color: var(--soft); width: 15rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.meter { display: block; height: 0.6rem; margin-top: 0.5rem; background: var(--grid); border-radius: 2px; overflow: hidden; }
.meter i { display: block; height: 100%; background: var(--accent); }
.share { width: 32%; min-width: 8rem; }
figure { margin: 0; }
svg { display: block; width: 100%; height: auto; font-size: 12px; }
svg text { fill: var(--soft); font-family: inherit; }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .curve { fill: none; stroke: var(--accent); stroke-width: 1.5; }
svg .point { fill: var(--accent); stroke: var(--page); stroke-width: 1.5; }
svg .edge { stroke: var(--warm); stroke-width: 1.5; stroke-dasharray: 6 4; }
svg .edge-label { fill: var(--warm); }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: 1.6rem 1.2rem; margin-top: 1.4rem; }
.pictures img { display: block; width: 100%; height: auto; border: 1px solid var(--rule); image-rendering: pixelated; }
figcaption { margin-top: 0.45rem; font-size: 0.88rem; line-height: 1.45; color: var(--soft); }
figcaption b { color: var(--ink); }
.scale { display: flex; align-items: center; gap: 0.7rem; color: var(--soft); font-size: 0.88rem; }
.scale i { width: 9rem; height: 0.7rem; border: 1px solid var(--rule);
  background: linear-gradient(90deg, #183a70, #3e7cb8, #a8cde5, #fafafa, #f6bda2, #cd584a, #700e24); }
.tables { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 2.4rem 2.6rem; margin-top: 1.6rem; }
.tables table { font-size: 0.9rem; table-layout: fixed; }
.tables caption { color: var(--ink); }
.tables caption span { color: var(--soft); font-size: 0.88rem; }
.tables th, .tables td { padding-top: 0.3rem; padding-bottom: 0.3rem; }
.tables .loading { width: 27%; }
.tables .number { width: 4.2rem; }
.signed { position: relative; display: block; height: 0.75rem; margin-top: 0.35rem;
  background: linear-gradient(var(--rule), var(--rule)) center / 1px 100% no-repeat; }
.signed i { position: absolute; top: 1px; bottom: 1px; }
.plus { left: 50%; background: var(--warm); }
.minus { right: 50%; background: var(--accent); }
pre { margin: 0 0 1.2rem; padding: 1rem 1.2rem; background: var(--panel); border: 1px solid var(--rule); border-radius: 4px;
  font: 0.86rem/1.55 ui-monospace, Consolas, Menlo, "DejaVu Sans Mono", "Liberation Mono", monospace;
  white-space: pre-wrap; }
footer { margin-top: 3.6rem; padding-top: 1rem; border-top: 1px solid var(--rule); color: var(--soft); font-size: 0.85rem; }
@media (max-width: 40rem) {
  main { padding: 2rem 1.2rem 3rem; }
  h1 { font-size: 1.8rem; }
  .facts th { width: 40%; }
  .share { display: none; }
  .tables { grid-template-columns: minmax(0, 1fr); }
}
@media print {
  :root {
    --page: #ffffff; --panel: #ffffff; --ink: #000000; --soft: #444444; --rule: #bbbbbb; --grid: #dddddd;
    --accent: #1f5a96; --warm: #b3402f; --alarm: #b3121d; --caution: #ffffff;
  }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { font-size: 11pt; }
  main { max-width: none; padding: 0; }
  h2 { break-after: avoid; margin-top: 2rem; }
  figure, tr, pre, blockquote, .alarm, .caution, .tables table { break-inside: avoid; }
}
)css";

}  // namespace eigenveil
