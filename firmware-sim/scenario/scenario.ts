/**
 * A scenario: locks, the events that happen to them, and expectations about what the locks send. It is the content of a
 * scenario file (docs/scenarios.md); reader.ts reads the file.
 */
import { Days } from '../../proto/clock.js';
import type { DeviceEvent } from '../device-event/device-event.js';
import type { City, Place } from '../world/routes/city.js';
import type { WaypointPath } from '../world/routes/waypoint-route.js';
import type { InitialState } from '../world/world.js';
import type { ScenarioExpectation } from './expectation.js';

/** A scenario that can be played. */
export interface Scenario {
  /** The path of the scenario file, for messages. */
  readonly file: string;
  readonly name: string;
  /** What the scenario shows, in one sentence. */
  readonly description: string;
  readonly seed: string;
  /** The time of the scenario's start and end, ms since the epoch. A live run, against a gateway, shifts both. */
  readonly startMs: number;
  readonly endMs: number;
  readonly city: City;
  readonly places: ReadonlyMap<string, Place>;
  /** Paths through waypoints, read from files, by the name that the scenario gives them. */
  readonly waypointPaths: ReadonlyMap<string, WaypointPath>;
  readonly locks: readonly ScenarioLock[];
  /** In order of time. */
  readonly events: readonly ScenarioEvent[];
  readonly expectations: readonly ScenarioExpectation[];
  /** Names of rules whose warnings are expected, since the scenario breaks links or coverage. */
  readonly warnings: ReadonlySet<string>;
  /** Whether a live run must use the scenario's hours of the day: the connections of mode HIGH depend on them. */
  readonly isBoundToHours: boolean;
}

/** A lock at the start of the scenario. */
export interface ScenarioLock {
  readonly name: string;
  readonly initialState: InitialState;
  readonly place: Place;
  /** The minute of the UTC day of its daily ping. */
  readonly dailyPingMinute: number;
}

/** Something that happens to one or more locks. */
export interface ScenarioEvent {
  readonly atMs: number;
  /** The names of the locks that the event happens to. */
  readonly locks: readonly string[];
  readonly deviceEvent: Exclude<DeviceEvent, { type: 'wait' }>;
  /** The event's text in the file. */
  readonly text: string;
  /** The event's line in the file. */
  readonly line: number;
}

/** A time of the scenario as text: the time of day, with the day's number if the scenario has several days. */
export function momentText({ startMs, endMs }: Pick<Scenario, 'startMs' | 'endMs'>, atMs: number): string {
  const dayOf = (ms: number): number => Math.floor(ms / Days(1));
  const time = new Date(atMs).toISOString().slice('2026-01-05T'.length, '2026-01-05T08:10:00.000'.length);
  const timeOfDay = time.endsWith('.000') ? time.slice(0, '08:10:00'.length) : time;
  return dayOf(startMs) === dayOf(endMs - 1) ? timeOfDay : `day ${dayOf(atMs) - dayOf(startMs) + 1} ${timeOfDay}`;
}
