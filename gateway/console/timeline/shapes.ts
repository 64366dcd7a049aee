/** The shapes that a timeline is drawn with, as plain data: the page draws them, a report prints them as SVG. Pure. */

/** One shape of a drawing, in the drawing's units: a rectangle, a path, a circle, or a text. */
export interface Shape {
  readonly kind: 'rect' | 'path' | 'circle' | 'text';
  /** The element's CSS classes, separated by spaces. */
  readonly className: string;
  /** The attributes of the SVG element of this kind, `text-anchor` included. */
  readonly attributes: Readonly<Record<string, string | number>>;
  /** The content of a text; undefined for the other kinds. */
  readonly text?: string;
  /** The text that appears while the pointer rests on the shape. */
  readonly title?: string;
  /** What the shape represents, such as `ping 12`; undefined for what can't be selected. */
  readonly item?: string;
}

/** The shape with its item, so that it can be selected; unchanged without an id. */
export function selectable(shape: Shape, kind: string, id: string | null): Shape {
  return id === null ? shape : { ...shape, item: `${kind} ${id}` };
}

/** @param d the path's data as in SVG, such as `M0 5H20` */
export function pathShape(className: string, d: string): Shape {
  return { kind: 'path', className, attributes: { d } };
}

export function textShape(
  className: string,
  x: number,
  y: number,
  text: string,
  anchor: 'start' | 'middle' | 'end',
): Shape {
  return { kind: 'text', className, attributes: { x, y, 'text-anchor': anchor }, text };
}
