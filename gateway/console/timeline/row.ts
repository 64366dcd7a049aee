/** A row of a timeline, which timeline-layout.ts places below the one before. Types and the usual height only. */
import type { Shape } from './shapes.js';

/** In the drawing's units: those of the SVG, which is scaled to the width of the page. */
export const ROW_HEIGHT = 18;

/** A row of the drawing: its name, and the shapes at its vertical position. */
export interface Row {
  readonly name: string;
  readonly height: number;
  readonly shapes: (top: number) => Shape[];
}
