/**
 * Reads a scenario file: parses YAML, validates it against the schema, then checks rules that the schema can't express
 * (places, locks, times, order). All mistakes of a file are reported together, each with its line and what was
 * expected. Reads no other files than the scenario file and the route files that it names.
 */
import path from 'node:path';
import { Errors } from 'typebox/value';
import { Days, Minutes } from '../../proto/clock.js';
import { DATE_EXPECTED, parseDate } from '../../proto/date.js';
import { LockgateError } from '../../proto/errors.js';
import { findRule } from '../../proto/power/rules.js';
import { DEFAULT_POWER, type PowerSettings } from '../../proto/wire/ping.js';
import { isDatable } from '../../proto/wire/ping-json.js';
import { type Destination, type DeviceEvent, parseDeviceEvent } from '../device-event/device-event.js';
import { parseMoment, parseSpan, parseTimeOfDay } from '../device-event/quantity-text.js';
import { readTextFile } from '../text-file.js';
import { AMSTERDAM, type City, type Place, placeOf } from '../world/routes/city.js';
import { MAX_METERS_FROM_CITY, readRouteInCity } from '../world/routes/route-file.js';
import type { WaypointPath } from '../world/routes/waypoint-route.js';
import { readExpectation, type ScenarioExpectation } from './expectation.js';
import type { Scenario, ScenarioEvent, ScenarioLock } from './scenario.js';
import { type EventText, type ExpectationText, type LockText, SCENARIO_SCHEMA, type ScenarioText } from './schema.js';
import { mistakesOf } from './schema-mistakes.js';
import { escaped, MAX_SCENARIO_BYTES, type Mistake, readYaml } from './yaml.js';

/** The default start: a fixed Monday morning, so that runs can be repeated. */
const DEFAULT_START = '2026-01-05T08:00:00Z';
/** The battery of a lock at the start, unless the scenario says otherwise. */
const DEFAULT_BATTERY_PERCENT = 80;
/** Maximum number of mistakes reported for one file. */
const MAX_MISTAKES = 20;
/** Maximum number of events, counting each repetition. It limits the memory of a run. */
const MAX_EVENTS = 20_000;
/** Maximum length of a scenario. */
const MAX_DAYS = 366;
const MAX_ROUTE_FILES = 50;
const MINUTES_OF_DAY = 24 * 60;
/** By default a lock's daily ping is this long before the start. */
const DEFAULT_DAILY_PING_BEFORE_MINUTES = 60;
const MOMENT_EXPECTED = 'a time such as 08:10, day 2 08:10 or +90 s, or the name of an event';

/** A scenario that can't be played. `messages` has all mistakes, each as `FILE:LINE: …`. */
export class ScenarioMistakes extends LockgateError {
  readonly messages: readonly string[];

  constructor(messages: readonly string[]) {
    super('input-scenario', messages.at(-1) ?? '');
    this.name = 'ScenarioMistakes';
    this.messages = messages;
  }
}

/**
 * Reads a file.
 *
 * @throws ScenarioMistakes for mistakes in its content
 * @throws LockgateError `input-file` if the file can't be read
 */
export async function readScenarioFile(file: string): Promise<Scenario> {
  return await parseScenario(await readTextFile(file, MAX_SCENARIO_BYTES), file);
}

/**
 * Reads the text of a scenario file. The paths of route files are relative to the folder of `file`.
 *
 * @throws ScenarioMistakes for mistakes in its content
 */
export async function parseScenario(text: string, file: string): Promise<Scenario> {
  const { value, lineOf, mistakes } = readYaml(text);
  const found: readonly Mistake[] =
    mistakes.length > 0 ? mistakes : mistakesOf(Errors(SCENARIO_SCHEMA, value), value, lineOf);
  if (found.length > 0) throw mistakesError(file, found);
  const reader = new ScenarioReader(value as ScenarioText, file, lineOf);
  const scenario = await reader.read();
  if (reader.mistakes.length > 0 || scenario === undefined) throw mistakesError(file, reader.mistakes);
  return scenario;
}

function mistakesError(file: string, mistakes: readonly Mistake[]): ScenarioMistakes {
  const ordered = [...mistakes].sort((a, b) => a.line - b.line).slice(0, MAX_MISTAKES);
  return new ScenarioMistakes(ordered.map(({ line, message }) => `${file}:${line}: ${message}`));
}

/**
 * Reads one file that conforms to the schema, and collects mistakes. A `pointer` is the JSON pointer of a value, which
 * gives the line of a mistake.
 */
class ScenarioReader {
  readonly mistakes: Mistake[] = [];
  readonly #text: ScenarioText;
  readonly #file: string;
  readonly #lineOf: (pointer: string) => number;
  readonly #places = new Map<string, Place>();
  readonly #files = new Map<string, WaypointPath>();
  /** The first time of each named event, by its name. */
  readonly #namedTimesMs = new Map<string, number>();
  #city: City = AMSTERDAM;
  #startMs = 0;
  #endMs = 0;

  constructor(text: ScenarioText, file: string, lineOf: (pointer: string) => number) {
    this.#text = text;
    this.#file = file;
    this.#lineOf = lineOf;
  }

  /** Reads the file; returns undefined if its start or its length is invalid. */
  async read(): Promise<Scenario | undefined> {
    const text = this.#text;
    if (!this.#readSpan()) return undefined;
    if (text.city !== undefined) {
      const { latitude, longitude, turned = 0 } = text.city;
      // The size of the city and its time zone stay those of Amsterdam.
      this.#city = {
        ...AMSTERDAM,
        latitudeDegrees: latitude,
        longitudeDegrees: longitude,
        gridRotationDegrees: turned,
      };
    }
    this.#readPlaces();
    const locks = this.#readLocks();
    if (locks.length === 0) this.#addMistake('/locks', 'there is no lock: expected at least one');
    const events = await this.#readEvents(locks);
    const expectations = this.#readExpectations(locks);
    for (const [index, rule] of (text.warnings ?? []).entries()) {
      if (findRule(rule)?.severity !== 'warning')
        this.#addMistake(`/warnings/${index}`, `${JSON.stringify(rule)}: expected a rule whose findings are warnings`);
    }
    return {
      file: this.#file,
      name: text.name ?? path.basename(this.#file).replace(/\.ya?ml$/, ''),
      description: text.description,
      seed: String(text.seed ?? '1'),
      startMs: this.#startMs,
      endMs: this.#endMs,
      city: this.#city,
      places: this.#places,
      waypointPaths: this.#files,
      locks,
      events,
      expectations,
      warnings: new Set(text.warnings ?? []),
      isBoundToHours: isBoundToHours(locks, events),
    };
  }

  /** Always returns undefined, so that a caller can report a mistake and return in one statement. */
  #addMistake(pointer: string, message: string): undefined {
    this.mistakes.push({ line: this.#lineOf(pointer), message });
    return undefined;
  }

  /** Reads the start and the length of the scenario. Returns whether both are valid. */
  #readSpan(): boolean {
    const { start = DEFAULT_START, lasts } = this.#text;
    this.#startMs = parseDate(start);
    const span = parseSpan(lasts);
    // Even the longest scenario must end in a year that a date can have.
    if (Number.isNaN(this.#startMs) || !isDatable(this.#startMs + Days(MAX_DAYS)))
      this.#addMistake('/start', `start is ${JSON.stringify(start)}: expected ${DATE_EXPECTED}`);
    if (span === undefined || span === 0 || span > Days(MAX_DAYS))
      this.#addMistake('/lasts', `lasts is ${JSON.stringify(lasts)}: expected a span of at most ${MAX_DAYS} days`);
    this.#endMs = this.#startMs + (span ?? 0);
    return this.mistakes.length === 0;
  }

  #readPlaces(): void {
    for (const [name, text] of Object.entries(this.#text.places ?? {})) {
      const place =
        'latitude' in text
          ? placeOf(this.#city, text.latitude, text.longitude)
          : { eastMeters: text.east, northMeters: text.north };
      this.#places.set(name, place);
      const isFar =
        Math.abs(place.eastMeters) > MAX_METERS_FROM_CITY || Math.abs(place.northMeters) > MAX_METERS_FROM_CITY;
      if (isFar)
        this.#addMistake(`/places/${escaped(name)}`, `${name} is too far away: expected within 100 km of the middle`);
    }
  }

  /** The place of this name; reports a mistake if there is none. */
  #place(name: string, pointer: string): Place | undefined {
    const place = this.#places.get(name);
    if (place !== undefined) return place;
    const names = [...this.#places.keys()];
    const expected = names.length === 0 ? 'one that is defined under places' : `one of ${names.join(', ')}`;
    return this.#addMistake(pointer, `there is no place ${JSON.stringify(name)}: expected ${expected}`);
  }

  /** Reads the locks. The text of a lock without members, a name and a colon, is null. */
  #readLocks(): ScenarioLock[] {
    return Object.entries(this.#text.locks).map(([name, text]) => {
      const pointer = `/locks/${escaped(name)}`;
      const place = text?.place === undefined ? undefined : this.#place(text.place, `${pointer}/place`);
      return {
        name,
        place: place ?? { eastMeters: 0, northMeters: 0 },
        dailyPingMinute: this.#dailyPingMinute(text, `${pointer}/daily_ping`),
        initialState: {
          lockState: text?.lock_state ?? 'locked',
          batteryPercent: text?.battery ?? DEFAULT_BATTERY_PERCENT,
          power: powerOf(text),
          ebikeVolts: text?.ebike ?? null,
          tetherState: text?.tether ?? 'detached',
          covered: text?.coverage ?? true,
          skyOpen: text?.gps ?? true,
        },
      };
    });
  }

  /**
   * The minute of a lock's daily ping. By default an hour before the start, so that a short scenario has no daily ping.
   */
  #dailyPingMinute(text: LockText | null, pointer: string): number {
    if (text?.daily_ping === undefined) {
      const minute = Math.floor(this.#startMs / Minutes(1)) - DEFAULT_DAILY_PING_BEFORE_MINUTES;
      // The second remainder makes a negative first one positive.
      return ((minute % MINUTES_OF_DAY) + MINUTES_OF_DAY) % MINUTES_OF_DAY;
    }
    const timeOfDay = parseTimeOfDay(text.daily_ping);
    if (timeOfDay === undefined)
      this.#addMistake(pointer, `${JSON.stringify(text.daily_ping)}: expected a time such as 06:00`);
    return Math.floor((timeOfDay ?? 0) / Minutes(1));
  }

  /** The names of the locks that an event or expectation is for. By default the only lock of the scenario. */
  #lockNames(text: string | readonly string[] | undefined, locks: readonly ScenarioLock[], pointer: string): string[] {
    const allNames = locks.map(({ name }) => name);
    if (text === undefined) {
      if (allNames.length > 1)
        this.#addMistake(pointer, `which lock? expected lock: with one of ${allNames.join(', ')}`);
      return allNames.slice(0, 1);
    }
    const names = typeof text === 'string' ? [text] : text;
    for (const name of names) {
      if (!allNames.includes(name))
        this.#addMistake(
          `${pointer}/lock`,
          `there is no lock ${JSON.stringify(name)}: expected one of ${allNames.join(', ')}`,
        );
    }
    return names.filter((name) => allNames.includes(name));
  }

  async #readEvents(locks: readonly ScenarioLock[]): Promise<ScenarioEvent[]> {
    const events: ScenarioEvent[] = [];
    for (const [index, text] of (this.#text.events ?? []).entries()) {
      const pointer = `/events/${index}`;
      const names = this.#lockNames(text.lock, locks, pointer);
      const times = this.#timesOf(text, pointer);
      if (text.name !== undefined) this.#nameEvent(text.name, times[0], `${pointer}/name`);
      const actions = typeof text.do === 'string' ? [text.do] : text.do;
      for (const [actionIndex, action] of actions.entries()) {
        const actionPointer = typeof text.do === 'string' ? `${pointer}/do` : `${pointer}/do/${actionIndex}`;
        const deviceEvent = await this.#deviceEvent(action, actionPointer);
        if (deviceEvent === undefined) continue;
        for (const atMs of times)
          events.push({ atMs, locks: names, deviceEvent, text: action, line: this.#lineOf(actionPointer) });
      }
    }
    if (events.length > MAX_EVENTS)
      this.#addMistake('/events', `${events.length} events, repeated ones counted: expected at most ${MAX_EVENTS}`);
    return events.sort((a, b) => a.atMs - b.atMs);
  }

  /** Stores the time of a named event, so that other times can refer to it. */
  #nameEvent(name: string, atMs: number | undefined, pointer: string): void {
    if (this.#namedTimesMs.has(name))
      this.#addMistake(pointer, `two events are called ${JSON.stringify(name)}: expected one`);
    else if (atMs !== undefined) this.#namedTimesMs.set(name, atMs);
  }

  /** The times of an event: one, or one for each of its days. */
  #timesOf(text: EventText, pointer: string): number[] {
    if (text.days !== undefined) return this.#timesOnDays(text, pointer);
    const atMs = this.#moment(text.at, `${pointer}/at`);
    if (atMs === undefined) return [];
    if (atMs < this.#startMs)
      this.#addMistake(`${pointer}/at`, `${text.at} is before the start: expected a later time`);
    else if (atMs >= this.#endMs)
      this.#addMistake(`${pointer}/at`, `${text.at} is after the end: expected an earlier time`);
    return [atMs];
  }

  #timesOnDays({ at, days = 'every day' }: EventText, pointer: string): number[] {
    const timeOfDay = parseTimeOfDay(at);
    if (timeOfDay === undefined) {
      this.#addMistake(
        `${pointer}/at`,
        `${JSON.stringify(at)}: expected a time of day such as 08:10, since days is given`,
      );
      return [];
    }
    const times: number[] = [];
    const firstMidnightMs = Math.floor(this.#startMs / Days(1)) * Days(1);
    for (let midnightMs = firstMidnightMs; midnightMs + timeOfDay < this.#endMs; midnightMs += Days(1)) {
      if (midnightMs + timeOfDay >= this.#startMs && isDayOf(days, midnightMs)) times.push(midnightMs + timeOfDay);
    }
    if (times.length === 0) this.#addMistake(`${pointer}/days`, `${days} never comes: expected it before the end`);
    return times;
  }

  /** Reads a time, absolute or relative to a named event. */
  #moment(text: string, pointer: string): number | undefined {
    const momentMs = parseMoment(text, this.#startMs);
    if (momentMs !== undefined) return momentMs;
    const [name = '', span] = text.split('+').map((part) => part.trim());
    const namedMs = this.#namedTimesMs.get(name);
    const afterMs = span === undefined ? 0 : parseSpan(span);
    if (namedMs !== undefined && afterMs !== undefined) return namedMs + afterMs;
    const namesInBrackets = this.#namedTimesMs.size === 0 ? '' : ` (${[...this.#namedTimesMs.keys()].join(', ')})`;
    return this.#addMistake(pointer, `${JSON.stringify(text)}: expected ${MOMENT_EXPECTED}${namesInBrackets}`);
  }

  /** Reads what happens in an event, and the place or the route file to which it refers. */
  async #deviceEvent(text: string, pointer: string): Promise<ScenarioEvent['deviceEvent'] | undefined> {
    const read = parseDeviceEvent(text);
    if (!read.ok) return this.#addMistake(pointer, read.error.message);
    const deviceEvent = read.value;
    if (deviceEvent.type === 'wait')
      return this.#addMistake(pointer, `${JSON.stringify(text)}: expected an event that does something`);
    const destination = destinationOf(deviceEvent);
    if (destination?.type === 'place') this.#place(destination.name, pointer);
    if (destination?.type === 'file') await this.#readRoute(destination.file, pointer);
    return deviceEvent;
  }

  async #readRoute(name: string, pointer: string): Promise<void> {
    if (this.#files.has(name)) return;
    if (this.#files.size >= MAX_ROUTE_FILES) {
      this.#addMistake(pointer, `too many route files: expected at most ${MAX_ROUTE_FILES}`);
      return;
    }
    const file = path.resolve(path.dirname(this.#file), name);
    try {
      this.#files.set(name, await readRouteInCity(file, this.#city, name));
    } catch (error) {
      if (!(error instanceof LockgateError)) throw error;
      this.#addMistake(pointer, error.message);
    }
  }

  #readExpectations(locks: readonly ScenarioLock[]): ScenarioExpectation[] {
    const expectations: ScenarioExpectation[] = [];
    const locksWithPing = new Set<string>();
    for (const [index, text] of (this.#text.expect ?? []).entries()) {
      const pointer = `/expect/${index}`;
      for (const lock of this.#lockNames(text.lock, locks, pointer)) {
        if (text.ping !== undefined) locksWithPing.add(lock);
        else if (text.next !== undefined && !locksWithPing.has(lock))
          this.#addMistake(`${pointer}/next`, `nothing comes before next: expected ping for the first of ${lock}`);
        const expectation = this.#expectation(text, lock, locks.length > 1 ? `${lock}: ` : '', pointer);
        if (expectation !== undefined) expectations.push(expectation);
      }
    }
    return expectations;
  }

  #expectation(text: ExpectationText, lock: string, subject: string, pointer: string): ScenarioExpectation | undefined {
    const pointerOf = (key: string | undefined): string => (key === undefined ? pointer : `${pointer}/${key}`);
    return readExpectation(text, {
      line: this.#lineOf(pointer),
      lock,
      subject,
      startMs: this.#startMs,
      endMs: this.#endMs,
      moment: (momentText, key) => this.#moment(momentText, pointerOf(key)),
      place: (name) => this.#place(name, `${pointer}/with/near`),
      reportMistake: (message, key) => this.#addMistake(pointerOf(key), message),
    });
  }
}

function destinationOf(deviceEvent: DeviceEvent): Destination | undefined {
  return deviceEvent.type === 'ride' || deviceEvent.type === 'theft' ? deviceEvent.destination : undefined;
}

function powerOf(text: LockText | null): PowerSettings {
  const power = text?.power ?? {};
  return {
    mode: power.mode ?? DEFAULT_POWER.mode,
    rideTracking: power.ride_tracking ?? DEFAULT_POWER.rideTracking,
    airplane: power.airplane ?? DEFAULT_POWER.airplane,
    recovery: power.recovery ?? DEFAULT_POWER.recovery,
  };
}

/** The days of the week, starting with the weekday of 1 January 1970. */
const WEEK = ['thursday', 'friday', 'saturday', 'sunday', 'monday', 'tuesday', 'wednesday'] as const;

/** Whether the day that starts at `midnightMs` is one of the given days. */
function isDayOf(days: string, midnightMs: number): boolean {
  const name = WEEK[(midnightMs / Days(1)) % 7];
  const isWeekend = name === 'saturday' || name === 'sunday';
  return days === 'every day' || days === name || days === (isWeekend ? 'weekends' : 'weekdays');
}

/**
 * Whether a live run (against a gateway, shifted to the present) must use the scenario's hours of the day. This is so
 * if the scenario uses mode HIGH, whose connection depends on the hour.
 */
function isBoundToHours(locks: readonly ScenarioLock[], events: readonly ScenarioEvent[]): boolean {
  return (
    locks.some(({ initialState }) => initialState.power.mode === 'HIGH') ||
    events.some(({ deviceEvent }) => {
      if (deviceEvent.type === 'settings') return deviceEvent.change.mode === 'HIGH';
      return (
        deviceEvent.type === 'command' &&
        deviceEvent.command.type === 'set-power' &&
        deviceEvent.command.mode === 'HIGH'
      );
    })
  );
}
