/**
 * Draws one lock's timeline as an SVG with the layout of the console (gateway/console/timeline/), and the key to its
 * states. Pure.
 */

import { describeAllowed } from '../../../../../gateway/console/timeline/allowed.js';
import type { Shape } from '../../../../../gateway/console/timeline/shapes.js';
import type { TimeRange } from '../../../../../gateway/console/timeline/timeline-data.js';
import { layoutTimeline } from '../../../../../gateway/console/timeline/timeline-layout.js';
import type { LockTimeline } from '../../../../../gateway/console/timeline/trace-timelines.js';
import { POWER_MODEL } from '../../../../../proto/power/model.js';
import { escapeXml } from '../../../../terminal/xml-text.js';
import type { FindingJson } from '../findings/finding-json.js';

/** In units of the drawing, which the page scales to its own width. */
const WIDTH = 1000;

/** The SVG. @param id unique in the page */
export function lockChart(lock: LockTimeline, findings: readonly FindingJson[], range: TimeRange, id: string): string {
  const marks = findings.map(({ at, line, rule, severity }) => ({
    atMs: at === null ? range.fromMs : Date.parse(at),
    severity,
    // A gateway's findings have ids; those of a trace check have none.
    id: null,
    title: `${severity} ${rule}, line ${line}`,
  }));
  const layout = layoutTimeline(lock.data(marks), range, WIDTH);
  const parts = [
    `<svg role="img" aria-labelledby="${id}-t ${id}-d" viewBox="0 0 ${layout.width} ${layout.height}">`,
    `<title id="${id}-t">Timeline of ${escapeXml(lock.mac)}</title>`,
    `<desc id="${id}-d">${escapeXml(layout.description)}</desc>`,
    ...layout.shapes.map(shapeSvg),
    '</svg>',
  ];
  return parts.join('\n');
}

function shapeSvg({ kind, className, attributes, text = '', title = '' }: Shape): string {
  const values = Object.entries(attributes).map(([name, value]) => ` ${name}="${value}"`);
  const element = `<${kind} class="${className}"${values.join('')}`;
  const shape = text === '' ? `${element}/>` : `${element}>${escapeXml(text)}</${kind}>`;
  return title === '' ? shape : `<g><title>${escapeXml(title)}</title>${shape}</g>`;
}

/** The states of the model with what they allow, as rows of a table. */
export function modelRows(): string[] {
  return POWER_MODEL.states.map((row) => {
    const square = `<rect class="state ${row.state}" width="10" height="10"/>`;
    const swatch = `<svg class="swatch" aria-hidden="true" viewBox="0 0 10 10">${square}</svg>`;
    const allowed = escapeXml(describeAllowed(row).replace('allows ', ''));
    return `<tr><th scope="row">${swatch} ${row.state}</th><td>${allowed}</td></tr>`;
  });
}
