/**
 * The schema of a scenario file. The reader validates files against it, and scenarios/scenario.schema.json is generated
 * from it for editors. An error message quotes a description as what was expected.
 */
import { type Static, type TSchema, Type } from 'typebox';
import { REASONS } from '../../proto/wire/reasons.js';

// Short functions that build parts of the schema. `description` completes "expected …" in an error message.
const text = (description: string, example: string): Type.TString =>
  Type.String({ minLength: 1, maxLength: 300, description, examples: [example] });
const objectWith = <Properties extends Type.TProperties>(properties: Properties, description: string) =>
  Type.Object(properties, { additionalProperties: false, description });
const number = (minimum: number, maximum: number, description: string): Type.TNumber =>
  Type.Number({ minimum, maximum, description });
const oneOf = <Word extends string>(words: readonly Word[], description: string) =>
  Type.Enum([...words], { description });

const Span = text('a span such as 90 s, 10 min or 2 h', '10 min');
const Moment = text(
  'a time such as 08:10, day 2 08:10 or +90 s (after the start), or the name of an event, such as theft + 5 s',
  '08:10',
);
const LockState = oneOf(['locked', 'unlocked'], 'locked or unlocked');
const TetherState = oneOf(['attached', 'detached', 'unknown'], 'attached, detached or unknown');
const Name = Type.String({
  pattern: '^[A-Za-z][A-Za-z0-9 _-]{0,49}$',
  description: 'a name: a letter, then up to 49 letters, digits, blanks, _ or -',
});
const recordByName = <Value extends TSchema>(value: Value, description: string, maxEntries: number) =>
  Type.Record(Type.String({ pattern: '^[A-Za-z][A-Za-z0-9 _-]{0,49}$' }), value, {
    additionalProperties: false,
    maxProperties: maxEntries,
    description,
  });

// No place is nearer to a pole than 85° of latitude: there, a degree of longitude has hardly any length.
const Place = Type.Union(
  [
    objectWith(
      { latitude: number(-85, 85, 'degrees, −85 to 85'), longitude: number(-180, 180, 'degrees, −180 to 180') },
      'a place by its coordinates',
    ),
    objectWith(
      {
        east: number(-100_000, 100_000, 'metres east of the middle'),
        north: number(-100_000, 100_000, 'metres north of the middle'),
      },
      'a place by its metres from the middle of the city',
    ),
  ],
  { description: 'a place: latitude and longitude in degrees, or metres east and north of the middle of the city' },
);

const Power = objectWith(
  {
    mode: Type.Optional(oneOf(['MID', 'HIGH'], 'MID or HIGH')),
    ride_tracking: Type.Optional(Type.Boolean({ description: 'true or false' })),
    airplane: Type.Optional(Type.Boolean({ description: 'true or false' })),
    recovery: Type.Optional(Type.Boolean({ description: 'true or false' })),
  },
  'the power settings that the lock is found with: mode, ride_tracking, airplane, recovery',
);

const LOCK_EXPECTED =
  'how a lock is found: place, power, battery, lock_state, tether, ebike, coverage, gps, daily_ping, or nothing';
const Lock = objectWith(
  {
    place: Type.Optional(text('where it stands: the name of a place', 'home')),
    power: Type.Optional(Power),
    battery: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 100, description: 'a whole number of percent, 0 to 100' }),
    ),
    lock_state: Type.Optional(LockState),
    tether: Type.Optional(TetherState),
    ebike: Type.Optional(number(0, 100, 'volts of the e-bike’s battery, 0 to 100')),
    coverage: Type.Optional(Type.Boolean({ description: 'true or false' })),
    gps: Type.Optional(Type.Boolean({ description: 'true or false' })),
    daily_ping: Type.Optional(text('the minute of the day (UTC) of its daily ping, such as 06:00', '06:00')),
  },
  LOCK_EXPECTED,
);

const LockNames = Type.Union([Name, Type.Array(Name, { minItems: 1, maxItems: 100 })], {
  description: 'the name of a lock, or a list of names',
});
const DAY_NAMES = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const;

const Event = objectWith(
  {
    at: Moment,
    days: Type.Optional(
      oneOf(['every day', 'weekdays', 'weekends', ...DAY_NAMES], 'every day, weekdays, weekends or the name of a day'),
    ),
    name: Type.Optional(Name),
    lock: Type.Optional(LockNames),
    do: Type.Union(
      [
        text('what happens, such as ride 2km', 'ride 2km'),
        Type.Array(text('what happens', 'unlock'), { minItems: 1, maxItems: 20 }),
      ],
      { description: 'what happens, such as "ride 2km", or a list of it' },
    ),
  },
  'an event: at, do, and where they are needed lock, name and days',
);

const Comparison = Type.Union(
  [
    Type.Number(),
    Type.String({ pattern: '^\\s*(<|<=|>|>=|=)\\s*-?\\d+(\\.\\d+)?\\s*$', examples: ['< 10'] }),
    Type.Null(),
  ],
  { description: 'a number, a comparison such as "< 10" or ">= 3.5", or null for none' },
);
const With = objectWith(
  {
    lock_state: Type.Optional(LockState),
    tether_state: Type.Optional(TetherState),
    mode: Type.Optional(oneOf(['MID', 'HIGH'], 'MID or HIGH')),
    ride_tracking: Type.Optional(Type.Boolean({ description: 'true or false' })),
    airplane: Type.Optional(Type.Boolean({ description: 'true or false' })),
    recovery: Type.Optional(Type.Boolean({ description: 'true or false' })),
    battery_percent: Type.Optional(Comparison),
    ebike_voltage: Type.Optional(Comparison),
    speed: Type.Optional(Comparison),
    near: Type.Optional(text('the name of a place within 150 m', 'work')),
  },
  'what the pings carry: lock_state, battery_percent, ebike_voltage, tether_state, speed, near, or power settings',
);

/** The syntax of a ping in an expectation, as a regular expression: a reason, then optionally a type. */
const PING = `^(${REASONS.map(({ name }) => name).join('|')})( (cellular|gps|close_connection))?$`;
const PING_EXPECTED =
  'a reason such as REASON_THEFT, optionally followed by cellular, gps or close_connection to require that type';
const Ping = Type.String({ pattern: PING, description: PING_EXPECTED, examples: ['REASON_THEFT cellular'] });
const PingsInARow = Type.String({
  pattern: PING.replace(/\$$/, '( (x[1-9]\\d{0,3}|repeated))?$'),
  description: `${PING_EXPECTED}; "x3" for three of them, "repeated" for one or more`,
  examples: ['REASON_THEFT gps repeated'],
});
const Count = Type.Integer({ minimum: 0, maximum: 1_000_000, description: 'a whole number, 0 or more' });

const Expectation = objectWith(
  {
    ping: Type.Optional(Ping),
    next: Type.Optional(Ping),
    never: Type.Optional(Ping),
    exactly: Type.Optional(Type.Array(PingsInARow, { maxItems: 500, description: 'a list of pings, in order' })),
    command: Type.Optional(
      oneOf(['unlock', 'lock', 'siren', 'locate-gps', 'locate-cell', 'set-power', 'reset'], 'a type of command'),
    ),
    connected: Type.Optional(Type.Literal(true, { description: 'true' })),
    silent: Type.Optional(Type.Literal(true, { description: 'true' })),
    lock: Type.Optional(LockNames),
    after: Type.Optional(Moment),
    until: Type.Optional(Moment),
    within: Type.Optional(Span),
    every: Type.Optional(Span),
    // The tolerance of times: "give or take".
    give: Type.Optional(Span),
    for: Type.Optional(Span),
    count: Type.Optional(Count),
    at_least: Type.Optional(Count),
    at_most: Type.Optional(Count),
    with: Type.Optional(With),
    arrives_after: Type.Optional(Moment),
    result: Type.Optional(oneOf(['ok', 'rejected', 'failed'], 'ok, rejected or failed')),
  },
  'an expectation: one of ping, next, never, exactly, command, connected or silent, and what goes with it',
);

/** The schema of a complete file. */
export const SCENARIO_SCHEMA = objectWith(
  {
    name: Type.Optional(text('what the scenario is called', 'theft')),
    description: text('what it shows, in a sentence', 'A locked bicycle is carried away.'),
    start: Type.Optional(text('when it begins: a date such as 2026-01-05T08:00:00Z', '2026-01-05T08:00:00Z')),
    lasts: Span,
    seed: Type.Optional(
      Type.Union([Type.String({ minLength: 1, maxLength: 100 }), Type.Integer()], {
        description: 'a whole number, or a text of at most 100 characters',
      }),
    ),
    city: Type.Optional(
      objectWith(
        {
          latitude: number(-85, 85, 'degrees, −85 to 85'),
          longitude: number(-180, 180, 'degrees, −180 to 180'),
          turned: Type.Optional(number(0, 360, 'degrees clockwise by which the streets are turned, 0 to 360')),
        },
        'the middle of the city: latitude and longitude, and how its streets are turned',
      ),
    ),
    places: Type.Optional(recordByName(Place, 'places by their names', 100)),
    locks: recordByName(Type.Union([Lock, Type.Null()], { description: LOCK_EXPECTED }), 'locks by their names', 100),
    events: Type.Optional(Type.Array(Event, { maxItems: 1000, description: 'a list of events' })),
    expect: Type.Optional(Type.Array(Expectation, { maxItems: 1000, description: 'a list of expectations' })),
    warnings: Type.Optional(
      Type.Array(text('the name of a rule', 'not-closed'), { maxItems: 20, description: 'a list of rules’ names' }),
    ),
  },
  'a scenario: description, lasts, locks, and mostly places, events and expect',
);

/** A file that conforms to the schema, as parsed from YAML; below, its expectations, events and locks. */
export type ScenarioText = Static<typeof SCENARIO_SCHEMA>;
export type ExpectationText = Static<typeof Expectation>;
export type EventText = Static<typeof Event>;
export type LockText = Static<typeof Lock>;

/** The schema for editors (JSON Schema 2020-12). */
export function scenarioJsonSchema(): object {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'A scenario of the lockgate simulator',
    // Leaves out what is not JSON: the members that only TypeBox reads.
    ...JSON.parse(JSON.stringify(SCENARIO_SCHEMA)),
  };
}
