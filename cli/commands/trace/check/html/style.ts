/**
 * The style sheet of the HTML report of `trace check`. Its colours also differ in lightness, so that the page can be
 * printed in grey.
 */
export const STYLE = `
:root { color-scheme: light; font: 15px/1.45 system-ui, sans-serif; color: #1b1f24; background: #fff; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-size: .87rem; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-bottom: 1px solid #d0d7de; }
thead th { border-bottom: 2px solid #57606a; }
td { overflow-wrap: anywhere; } .short, tbody th { white-space: nowrap; } .number { text-align: right; }
.bad, td.violation { color: #a40e26; } .good { color: #116329; } td.warning { color: #7a4b00; }
article { border-top: 1px solid #d0d7de; margin-top: 1rem; }
article > svg { width: 100%; height: auto; display: block; font-family: system-ui, sans-serif; }
.swatch { width: .8rem; height: .8rem; vertical-align: -1px; }
.label, .time, .name { font-size: 12px; fill: #1b1f24; } .name { font-weight: 600; }
.state { stroke: #57606a; stroke-width: .6; } .MID { fill: #dbe9fb; } .HIGH { fill: #8fc1f5; }
.RECOVERY { fill: #f6c26b; } .LOW_BATTERY { fill: #f2a39b; } .AIRPLANE { fill: #c9ccd1; }
.allowed { fill: #ecf0f2; } .connection-loss { stroke: #a40e26; stroke-width: 2; }
.ping { fill: #24466b; } .connection { fill: #57606a; } .command.good { fill: #116329; }
.command.bad { fill: #a40e26; } .command.open { fill: #7a4b00; } .axis { stroke: #57606a; fill: none; }
path.violation { fill: #a40e26; } circle.warning { fill: #fff; stroke: #7a4b00; stroke-width: 2; }
@media print {
  @page { margin: 1.5cm; }
  :root { font-size: 10pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; } svg, tr { break-inside: avoid; } h2, h3 { break-after: avoid; }
  thead { display: table-header-group; }
}
`;
