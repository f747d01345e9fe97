// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

/// The whole look of a report. No fonts, pictures or scripts from elsewhere; light, dark and print.
inline constexpr const char* kReportStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #fbfaf8; --panel: #ffffff; --ink: #1d2430; --soft: #56606d; --rule: #ddd9d2; --grid: #ebe8e2;
  --accent: #1c5d99; --warm: #b0432a; --shade: #f3ebe4;
  --holds: #17694a; --plane: #1c5d99; --weak: #8a5a00; --noise: #5f6670;
  --holds-tint: #dff2e8; --plane-tint: #dfecf8; --weak-tint: #fbeccb; --noise-tint: #e8e8ea;
  --alarm: #b3121d; --alarm-ink: #ffffff; --caution: #fdf3d9; --caution-rule: #cf9a17;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171c; --panel: #1b2027; --ink: #e6e8ec; --soft: #a5aebb; --rule: #353c47; --grid: #272d36;
    --accent: #84b6ea; --warm: #ee957c; --shade: #2a2524;
    --holds: #7fd6ad; --plane: #8fc0f2; --weak: #efc46c; --noise: #b2bac4;
    --holds-tint: #173428; --plane-tint: #18304a; --weak-tint: #3b2f12; --noise-tint: #2c323a;
    --alarm: #c2242f; --alarm-ink: #ffffff; --caution: #2e2714; --caution-rule: #b98d1e;
  }
}
* { box-sizing: border-box; }
html { background: var(--page); -webkit-text-size-adjust: 100%; }
body { margin: 0; color: var(--ink); background: var(--page); overflow-wrap: anywhere;
  font: 16px/1.6 system-ui, "Segoe UI", "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 3.5rem 2rem 4rem; }
h1, h2, h3 { font-family: Charter, Georgia, "Times New Roman", "Liberation Serif", serif; font-weight: 600; line-height: 1.25; }
h1 { font-size: 2.5rem; margin: 0.2rem 0 0.8rem; letter-spacing: -0.015em; }
h2 { font-size: 1.55rem; margin: 3.6rem 0 1rem; padding-top: 1.3rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.08rem; margin: 0; display: inline; }
h3.part { display: block; font-size: 1.2rem; margin: 2.4rem 0 0.7rem; }
p, ul { max-width: 46rem; }
p { margin: 0 0 1rem; }
ul { padding-left: 1.2rem; margin: 0.5rem 0 1rem; }
li { margin-bottom: 0.4rem; }
a { color: var(--accent); }
.eyebrow { margin: 0; color: var(--soft); font-size: 0.8rem; letter-spacing: 0.12em; text-transform: uppercase; }
.lead { font-size: 1.12rem; color: var(--soft); }
.verdict { font-family: Charter, Georgia, "Times New Roman", "Liberation Serif", serif; font-size: 1.4rem; line-height: 1.45; }
.promise { padding: 1.1rem 1.4rem; background: var(--panel); border: 1px solid var(--rule); border-left: 5px solid var(--holds);
  border-radius: 4px; font-size: 1.1rem; max-width: none; }
.promise.void { border-left-color: var(--alarm); color: var(--soft); }
.note { color: var(--soft); font-size: 0.92rem; }
table + .note, .figures + .note, .pictures + .note, .tables + .note { margin-top: 1rem; }
.glance { display: flex; flex-wrap: wrap; gap: 1px; margin: 1.6rem 0; padding: 1px;
  background: var(--rule); border-radius: 4px; overflow: hidden; }
.glance div { flex: 1 1 9.5rem; background: var(--panel); padding: 0.7rem 1rem; }
.glance dt { color: var(--soft); font-size: 0.8rem; }
.glance dd { margin: 0.1rem 0 0; font-weight: 600; }
.alarm { margin: 1.6rem 0; padding: 1.3rem 1.6rem; background: var(--alarm); color: var(--alarm-ink); border-radius: 4px; }
.alarm strong { display: block; font-size: 2rem; letter-spacing: 0.06em; line-height: 1.3; }
.alarm p { margin: 0.3rem 0 0; }
.unsafe { border-left: 8px solid var(--alarm); padding-left: 1.4rem; }
.caution { margin: 1rem 0; padding: 0.8rem 1.3rem; background: var(--caution); border-left: 5px solid var(--caution-rule);
  border-radius: 0 4px 4px 0; max-width: none; }
.caution p { margin: 0; max-width: none; }
.caution ul { margin: 0.4rem 0 0; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1rem 2.6rem; margin-top: 1.6rem; }
blockquote { margin: 0.8rem 0; padding: 0.2rem 0 0.2rem 1.2rem; border-left: 3px solid var(--rule); color: var(--soft); }
blockquote p { margin: 0; }
details { margin: 1.2rem 0; }
summary { cursor: pointer; font-weight: 600; color: var(--accent); padding: 0.25rem 0; }
summary:hover { text-decoration: underline; }
summary:focus-visible, a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
table { width: 100%; border-collapse: collapse; font-size: 0.95rem; margin-top: 0.6rem; }
caption { text-align: left; padding-bottom: 0.5rem; }
caption span:not(.chip) { color: var(--soft); font-size: 0.88rem; }
th, td { padding: 0.45rem 0.9rem 0.45rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--grid); }
th:last-child, td:last-child { padding-right: 0; }
thead th, thead td { border-bottom: 1px solid var(--rule); vertical-align: bottom; }
thead th { color: var(--soft); font-weight: 600; font-size: 0.85rem; overflow-wrap: normal; }
tbody th { font-weight: 400; }
.facts th { color: var(--soft); }
.facts th:first-child { width: 13rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
.chip { display: inline-block; white-space: nowrap; padding: 0.05rem 0.6rem; border-radius: 1rem; font-size: 0.82rem; font-weight: 600; line-height: 1.5; }
.chip.holds { background: var(--holds-tint); color: var(--holds); }
.chip.plane { background: var(--plane-tint); color: var(--plane); }
.chip.weak { background: var(--weak-tint); color: var(--weak); }
.chip.noise { background: var(--noise-tint); color: var(--noise); }
.meter { display: block; height: 0.6rem; margin-top: 0.5rem; background: var(--grid); border-radius: 2px; overflow: hidden; }
.meter i { display: block; height: 100%; background: var(--accent); }
.share { width: 26%; min-width: 7rem; }
.budget { display: flex; height: 2rem; border-radius: 4px; overflow: hidden; background: var(--grid); border: 1px solid var(--rule); }
.budget i { display: block; height: 100%; }
.before { background: var(--noise); }
.now { background: var(--accent); }
.left { background: var(--holds-tint); }
.keys { list-style: none; display: flex; flex-wrap: wrap; gap: 0.3rem 2rem; padding: 0; margin: 0.8rem 0 1rem; max-width: none; }
.keys li { margin: 0; }
.keys i { display: inline-block; width: 0.9rem; height: 0.9rem; margin-right: 0.5rem; border-radius: 2px; border: 1px solid var(--rule); vertical-align: -0.1rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1.4rem; margin: 1.6rem 0; }
.figures figure:last-child:nth-child(odd) { grid-column: 1 / -1; }
figure { margin: 0; }
.figures figure, figure.wide { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; padding: 1.1rem 1.1rem 0.9rem; }
figure.wide { margin: 1.4rem 0; }
.figures svg, figure.wide svg { max-width: 36rem; margin: 0 auto; }
svg { display: block; width: 100%; height: auto; font-size: 12px; }
svg text { fill: var(--soft); font-family: inherit; }
svg text.strong { fill: var(--ink); font-weight: 600; }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .zero { stroke: var(--rule); stroke-width: 1; stroke-dasharray: 2 3; }
svg .density rect { fill: var(--accent); }
svg .tick { fill: var(--soft); font-size: 11px; }
svg .frame { fill: none; stroke: var(--rule); stroke-width: 1; }
svg .curve { fill: none; stroke: var(--accent); stroke-width: 1.5; }
svg .point { fill: var(--accent); stroke: var(--panel); stroke-width: 1.5; }
svg .minor { fill: var(--accent); opacity: 0.35; }
svg .band { stroke: var(--accent); stroke-width: 3; opacity: 0.55; stroke-linecap: round; }
svg .holds { fill: var(--holds); } svg .band.holds { stroke: var(--holds); }
svg .plane { fill: var(--plane); } svg .band.plane { stroke: var(--plane); }
svg .weak { fill: var(--weak); } svg .band.weak { stroke: var(--weak); }
svg .noise { fill: var(--noise); } svg .band.noise { stroke: var(--noise); }
svg .edge { stroke: var(--warm); stroke-width: 1.5; stroke-dasharray: 6 4; }
svg .noise-area { fill: var(--shade); }
svg .edge-label { fill: var(--warm); }
svg .arrow { stroke: var(--accent); stroke-width: 1.6; }
svg .leader { stroke: var(--rule); stroke-width: 1; }
svg .group { fill: var(--accent); fill-opacity: 0.55; stroke: var(--panel); stroke-width: 1.5; }
svg .site { fill: var(--page); stroke: var(--rule); }
svg .coordinator { fill: var(--plane-tint); stroke: var(--accent); }
svg .pixels { image-rendering: pixelated; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(8rem, 1fr)); gap: 1.4rem 1.1rem; margin-top: 1rem; }
.pictures img { display: block; width: 100%; height: auto; border: 1px solid var(--rule); image-rendering: pixelated; }
figcaption { margin-top: 0.6rem; font-size: 0.88rem; line-height: 1.5; color: var(--soft); }
figcaption b { color: var(--ink); }
.scale, .unbroken { white-space: nowrap; }
.scale i { display: inline-block; width: 6rem; height: 0.7rem; border: 1px solid var(--rule); vertical-align: -0.05rem;
  background: linear-gradient(90deg, #183a70, #3e7cb8, #a8cde5, #fafafa, #f6bda2, #cd584a, #700e24); }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1.8rem 2.6rem; margin-top: 1rem; align-items: start; }
.tables table { font-size: 0.9rem; table-layout: fixed; margin: 0; }
.tables th, .tables td { padding-top: 0.28rem; padding-bottom: 0.28rem; }
.loading { width: 34%; }
.tables .number { width: 4.4rem; }
.pair { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; padding: 1rem 1.2rem; margin-top: 1.2rem; }
.between { margin: 0; }
.unsure th, .unsure td { color: var(--soft); }
.unsure .plus, .unsure .minus, .unsure .signed b { opacity: 0.45; }
.signed, .forest { position: relative; display: block; height: 0.9rem; margin-top: 0.3rem;
  background: linear-gradient(var(--soft), var(--soft)) center / 1px 100% no-repeat; }
.signed i, .signed b, .forest i, .forest b { position: absolute; }
.signed i { top: 2px; bottom: 2px; border-radius: 1px; }
.signed b, .forest b { top: calc(50% - 1px); height: 2px; background: var(--ink); }
.forest b { background: var(--holds); height: 4px; top: calc(50% - 2px); border-radius: 2px; }
.forest i { top: calc(50% - 5px); width: 10px; height: 10px; margin-left: -5px; border-radius: 50%; background: var(--holds); }
.forest.none b, .forest.none i { background: var(--noise); }
.plus { left: 50%; background: var(--warm); }
.minus { right: 50%; background: var(--accent); }
pre { margin: 0 0 1.2rem; padding: 1rem 1.2rem; background: var(--panel); border: 1px solid var(--rule); border-radius: 4px;
  font: 0.86rem/1.55 ui-monospace, Consolas, Menlo, "DejaVu Sans Mono", "Liberation Mono", monospace;
  white-space: pre-wrap; }
.words { display: grid; grid-template-columns: minmax(8rem, 13rem) 1fr; gap: 0.5rem 1.4rem; font-size: 0.94rem; }
.words dt { font-weight: 600; }
.words dd { margin: 0; color: var(--soft); }
article + article { margin-top: 5rem; padding-top: 2rem; border-top: 6px double var(--rule); }
footer { margin-top: 3.6rem; padding-top: 1rem; border-top: 1px solid var(--rule); color: var(--soft); font-size: 0.85rem; }
@media (max-width: 40rem) {
  th, td { padding-right: 0.6rem; }
  main { padding: 1.8rem 1.1rem 3rem; }
  h1 { font-size: 1.9rem; }
  .verdict { font-size: 1.2rem; }
  .glance div { flex-basis: 8rem; }
  .verdicts { font-size: 0.78rem; }
  .verdicts thead th { font-size: 0.7rem; }
  .verdicts th, .verdicts td { padding-right: 0.35rem; }
  .verdicts .chip { font-size: 0.72rem; padding: 0 0.4rem; }
  .extra { display: none; }
  .facts th:first-child { width: 38%; }
  .share { display: none; }
  .figures { grid-template-columns: minmax(0, 1fr); }
  .figures figure, figure.wide { padding: 0.7rem 0.5rem; }
  .estimates .loading { width: 20%; }
  .estimates tbody th { min-width: 5.2rem; }
  .words { grid-template-columns: 1fr; gap: 0.1rem; }
  .words dd { margin-bottom: 0.7rem; }
  .unsafe { padding-left: 0.8rem; }
}
@media print {
  :root {
    --page: #ffffff; --panel: #ffffff; --ink: #000000; --soft: #444444; --rule: #bbbbbb; --grid: #dddddd;
    --accent: #1c5d99; --warm: #b0432a; --shade: #f3ebe4; --alarm: #b3121d; --caution: #ffffff;
    --holds: #17694a; --plane: #1c5d99; --weak: #8a5a00; --noise: #5f6670;
    --holds-tint: #dff2e8; --plane-tint: #dfecf8; --weak-tint: #fbeccb; --noise-tint: #e8e8ea;
  }
  @page { margin: 16mm 14mm; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  h2 { margin-top: 1.8rem; }
  h2, h3, summary, p:has(+ pre) { break-after: avoid; }
  details::details-content { content-visibility: visible; height: auto; }
  figure, tr, pre, blockquote, .alarm, .caution, .tables table, .glance, .promise { break-inside: avoid; }
  .figures { grid-template-columns: minmax(0, 1fr); }
  .figures svg, figure.wide svg { max-width: 29rem; }
  article + article { break-before: page; }
}
)css";

}  // namespace eigenveil
