/**
 * Makes the trace of firmware that lacks a function, from the trace of a healthy fleet: pings are left out or changed,
 * and the others are numbered again as if the left-out ones had never been made.
 */

/** A ping line of a trace, as JSON. */
export interface PingLine {
  readonly mac: string;
  readonly source?: string;
  ping: Record<string, unknown> & { readonly reason: string; readonly ping_type: string };
}

/** What becomes of a ping: another one, or null if the firmware does not make it. */
export type Mutation = (ping: PingLine['ping'], mac: string) => PingLine['ping'] | null;

interface Numbered {
  readonly boot: number;
  sequence: number;
}

/** The lines of the mutant. The line of a left-out ping becomes empty, so that the numbers of the others stay. */
export function mutantOf(lines: readonly string[], mutate: Mutation): string[] {
  const missing = new Map<string, number[]>();
  const mutated = lines.map((line) => {
    const event = JSON.parse(line) as PingLine & { readonly event?: string };
    if (event.event !== 'ping' || event.source === 'phone') return event;
    const ping = mutate(event.ping, event.mac);
    if (ping !== null) return { ...event, ping };
    const { boot, sequence } = event.ping as unknown as Numbered;
    const ofBoot = missing.get(`${event.mac} ${boot}`);
    if (ofBoot === undefined) missing.set(`${event.mac} ${boot}`, [sequence]);
    else if (!ofBoot.includes(sequence)) ofBoot.push(sequence);
    return null;
  });
  return mutated.map((event) => {
    if (event === null) return '';
    const { mac, ping, ack } = event as PingLine & { readonly ack?: Numbered };
    const numbered = (ping as unknown as Numbered | undefined) ?? ack;
    if (numbered !== undefined) {
      const before = missing.get(`${mac} ${numbered.boot}`) ?? [];
      const { sequence } = numbered;
      numbered.sequence = sequence - before.filter((each) => each < sequence).length;
    }
    return JSON.stringify(event);
  });
}
