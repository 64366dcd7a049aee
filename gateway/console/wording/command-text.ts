/** What the command line and the page call a command. Pure. */

/** A command's type and its parameters by name. */
interface CommandWords {
  readonly type: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The type and its parameters, such as `siren seconds=20`. */
export function commandText({ type, parameters }: CommandWords): string {
  const words = Object.entries(parameters).map(([name, value]) => `${name}=${parameterText(value)}`);
  return [type, ...words].join(' ');
}

/**
 * A value as text. An object is a high window, the daily hours in which a lock stays connected: `07:00-19:00+60min`.
 */
function parameterText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const { from, to, utc_offset_minutes: offset } = value as Readonly<Record<string, unknown>>;
  return `${from}-${to}${Number(offset) < 0 ? '' : '+'}${offset}min`;
}
