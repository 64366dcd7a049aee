/**
 * Makes the trace (recorded events) of firmware that lacks a function (a mutant), from the trace of a healthy fleet.
 * Some pings are omitted or changed. The remaining uplinks (pings and acknowledgements) are renumbered as if the lock
 * had never made the omitted pings.
 */

/** A ping line of a trace, as JSON. */
export interface PingLine {
  readonly mac: string;
  readonly source?: string;
  ping: Record<string, unknown> & { readonly reason: string; readonly ping_type: string };
}

/** Returns the ping that the firmware makes in place of this ping; null if it makes none. */
export type Mutation = (ping: PingLine['ping'], mac: string) => PingLine['ping'] | null;

/** The members that number an uplink. */
interface Numbered {
  readonly boot: number;
  sequence: number;
}

/**
 * The mutant's trace. The line of an omitted ping becomes empty, so that the remaining lines keep their line numbers.
 * Messages of phones are unchanged.
 */
export function mutantOf(lines: readonly string[], mutate: Mutation): string[] {
  /** The sequence numbers of the omitted pings, by MAC and boot number. */
  const omittedByBoot = new Map<string, number[]>();
  const mutated = lines.map((line) => {
    const event = JSON.parse(line) as PingLine & { readonly event?: string };
    if (event.event !== 'ping' || event.source === 'phone') return event;
    const ping = mutate(event.ping, event.mac);
    if (ping !== null) return { ...event, ping };
    const { boot, sequence } = event.ping as unknown as Numbered;
    const omitted = omittedByBoot.get(`${event.mac} ${boot}`);
    if (omitted === undefined) omittedByBoot.set(`${event.mac} ${boot}`, [sequence]);
    else if (!omitted.includes(sequence)) omitted.push(sequence);
    return null;
  });
  return mutated.map((event) => {
    if (event === null) return '';
    const { mac, ping, ack } = event as PingLine & { readonly ack?: Numbered };
    const numbered = (ping as unknown as Numbered | undefined) ?? ack;
    if (numbered !== undefined) {
      const omittedOfBoot = omittedByBoot.get(`${mac} ${numbered.boot}`) ?? [];
      const { sequence } = numbered;
      numbered.sequence = sequence - omittedOfBoot.filter((earlier) => earlier < sequence).length;
    }
    return JSON.stringify(event);
  });
}
