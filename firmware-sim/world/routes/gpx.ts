/**
 * Reads GPX (https://www.topografix.com/gpx/1/1/): the points of all tracks in order or, in a file without tracks, of
 * all routes. Single waypoints, elevations and extensions are ignored.
 *
 * A file with a document type is refused: no GPX file needs one, and its entities could expand to a huge text.
 */
import { type SaxesAttributePlain, SaxesParser, type SaxesTagPlain } from 'saxes';
import { DATE_EXPECTED, parseDate } from '../../../proto/date.js';
import { type Waypoint, WaypointList, type Waypoints } from './waypoints.js';

/** Maximum nesting of elements. A track point is at depth four. */
const MAX_DEPTH = 64;
/** Longer than any valid date. */
const MAX_TIME_CHARACTERS = 64;
const EXPECTED = 'a track (trk) or route (rte) with at least two points (trkpt, rtept)';

/** The point whose element is open. */
interface OpenPoint {
  readonly kind: 'trkpt' | 'rtept';
  readonly line: number;
  readonly latitudeDegrees: number;
  readonly longitudeDegrees: number;
  atMs: number | null;
}

/** Reads the text of a GPX file. @throws LockgateError `input-route`, with the line and what was expected */
export function parseGpx(text: string, name: string): Waypoints {
  return new GpxReader(name).read(text);
}

/** Reads one file. The parser calls it for each element and text. */
class GpxReader {
  readonly #parser = new SaxesParser();
  readonly #tracks: WaypointList;
  readonly #routes: WaypointList;
  /** The names of the open elements, without the file's GPX namespace prefix. */
  readonly #openElements: string[] = [];
  /** The namespace prefix of GPX elements, with its colon. */
  #prefix = '';
  /** The line in which the last tag starts, for errors. */
  #tagLine = 1;
  #point: OpenPoint | undefined;
  #hasTracks = false;
  /** The text of the open time element. */
  #time = '';

  constructor(name: string) {
    this.#tracks = new WaypointList(name);
    this.#routes = new WaypointList(name);
    const parser = this.#parser;
    parser.on('error', (error) => {
      // The parser's message starts with a line and a column, such as `3:14: `.
      throw this.#errorAt(`this is not XML (${error.message.replace(/^\d+:\d+: /, '')})`, 'a GPX file');
    });
    parser.on('doctype', () => {
      throw this.#errorAt('the file has a document type', 'GPX, which has none (and no entities of its own)');
    });
    parser.on('opentagstart', () => {
      // The parser has already read the character after the name, which may be a line break.
      this.#tagLine = parser.column === 0 ? parser.line - 1 : parser.line;
    });
    parser.on('opentag', (tag) => this.#onOpenTag(tag));
    parser.on('closetag', () => this.#onCloseTag());
    parser.on('text', (chunk) => this.#onText(chunk));
    parser.on('cdata', (chunk) => this.#onText(chunk));
  }

  read(text: string): Waypoints {
    const parser = this.#parser.write(text);
    const lastLine = parser.line;
    parser.close();
    const points = this.#hasTracks ? this.#tracks : this.#routes;
    return points.finish(`:${lastLine}`, EXPECTED);
  }

  #onOpenTag({ name, attributes }: SaxesTagPlain): void {
    if (this.#openElements.length === 0) this.#checkRootElement(name);
    if (this.#openElements.length >= MAX_DEPTH)
      throw this.#errorAt('elements are nested too deeply', `at most ${MAX_DEPTH} levels`);
    // An element with another prefix is an extension. The question mark keeps its name from equalling one of GPX.
    const localName = name.startsWith(this.#prefix) ? name.slice(this.#prefix.length) : `?${name}`;
    this.#openElements.push(localName);
    if (localName === 'trkpt' || localName === 'rtept') this.#point = this.#pointOf(localName, attributes);
    else if (this.#isTime()) this.#time = '';
  }

  #checkRootElement(name: string): void {
    if (name !== 'gpx' && !name.endsWith(':gpx')) throw this.#errorAt(`the file is <${name}>`, '<gpx>');
    this.#prefix = name.slice(0, -'gpx'.length);
  }

  #pointOf(kind: OpenPoint['kind'], attributes: Record<string, SaxesAttributePlain | string>): OpenPoint {
    const degrees = (name: 'lat' | 'lon', maxDegrees: number): number => {
      const text = String(attributes[name] ?? '').trim();
      const value = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text) ? Number(text) : Number.NaN;
      if (Math.abs(value) <= maxDegrees) return value;
      const found = attributes[name] === undefined ? `<${kind}> has no ${name}` : `${name} is ${JSON.stringify(text)}`;
      throw this.#errorAt(found, `degrees from -${maxDegrees} to ${maxDegrees}`);
    };
    const [latitudeDegrees, longitudeDegrees] = [degrees('lat', 90), degrees('lon', 180)];
    return { kind, line: this.#tagLine, latitudeDegrees, longitudeDegrees, atMs: null };
  }

  /** Whether the innermost open element is the time of a point, not the time of the file or of an extension. */
  #isTime(): boolean {
    return (
      this.#point !== undefined &&
      this.#openElements.at(-1) === 'time' &&
      this.#openElements.at(-2) === this.#point.kind
    );
  }

  #onText(chunk: string): void {
    if (!this.#isTime()) return;
    this.#time = (this.#time + chunk).slice(0, MAX_TIME_CHARACTERS);
  }

  #onCloseTag(): void {
    const point = this.#point;
    if (point !== undefined && this.#isTime()) {
      point.atMs = this.#timeOf(this.#time.trim());
    } else if (point !== undefined && this.#openElements.at(-1) === point.kind) {
      this.#addPoint(point);
      this.#point = undefined;
    }
    this.#openElements.pop();
  }

  /** A time without a zone is in UTC, as GPX specifies. */
  #timeOf(text: string): number {
    const atMs = parseDate(/[Zz]$|[+-]\d\d:\d\d$/.test(text) ? text : `${text}Z`);
    if (!Number.isNaN(atMs)) return atMs;
    this.#tagLine = this.#parser.line;
    throw this.#errorAt(`the time is ${JSON.stringify(text)}`, DATE_EXPECTED);
  }

  #addPoint({ kind, line, latitudeDegrees, longitudeDegrees, atMs }: OpenPoint): void {
    const point: Waypoint = { latitudeDegrees, longitudeDegrees, atMs };
    if (kind === 'trkpt') this.#hasTracks = true;
    (kind === 'trkpt' ? this.#tracks : this.#routes).add(point, `:${line}`);
  }

  #errorAt(found: string, expected: string): Error {
    const line = found.startsWith('this is not XML') ? this.#parser.line : this.#tagLine;
    return this.#tracks.errorAt(`:${line}`, found, expected);
  }
}
