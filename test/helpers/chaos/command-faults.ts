/** Commands that a run sends to its locks, and the faults in what became of them. */
import type { SeededChance } from '../pair/seeded-chance.js';
import type { PostgresServer } from '../store/postgres/server.js';
import type { ChaosDiary } from './chaos-lock.js';
import type { KeptGateway } from './kept-gateway.js';

/** Sends commands through any gateway, and remembers which ones were confirmed. */
export class SentCommands {
  /** The lock of each command that a gateway confirmed, by the command's id. */
  readonly macOf = new Map<number, string>();
  /** How many requests had no answer: their commands may be stored or not. */
  unknown = 0;
  #isPaused = false;
  /** The last request. */
  #sending: Promise<void> = Promise.resolve();
  readonly #gateways: readonly KeptGateway[];
  readonly #macs: readonly string[];
  readonly #chance: SeededChance;

  constructor(gateways: readonly KeptGateway[], macs: readonly string[], chance: SeededChance) {
    this.#gateways = gateways;
    this.#macs = macs;
    this.#chance = chance;
  }

  /** Sends no commands until {@link resume}. Resolves when none is on its way to a gateway. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    await this.#sending;
  }

  resume(): void {
    this.#isPaused = false;
  }

  /** Asks any gateway that runs to send a command to any lock. */
  async send(): Promise<void> {
    if (this.#isPaused) return;
    this.#sending = this.#send();
    await this.#sending;
  }

  async #send(): Promise<void> {
    const up = this.#gateways.filter(({ isUp }) => isUp);
    if (up.length === 0) return;
    const { child } = this.#chance.pick(up);
    const mac = this.#chance.pick(this.#macs);
    try {
      const request = { macs: [mac], type: 'locate-cell', expires_in: 3600 };
      const { commands } = await child.post<{ commands: { id?: number }[] }>('/commands', request);
      const id = commands[0]?.id;
      if (id === undefined) this.unknown += 1;
      else this.macOf.set(id, mac);
    } catch {
      this.unknown += 1;
    }
  }

  /** How many commands are not answered yet. */
  async countUnanswered(server: PostgresServer, database: string): Promise<number> {
    return await count(server, database, `state IN ('queued', 'sent')`);
  }

  /** How many commands were answered. */
  async countAnswers(server: PostgresServer, database: string): Promise<number> {
    return await count(server, database, `state = 'done'`);
  }
}

/** How many stored commands meet this condition in SQL. */
async function count(server: PostgresServer, database: string, condition: string): Promise<number> {
  const [row] = await server.query(database, `SELECT count(*)::int AS count FROM command WHERE ${condition}`);
  return Number(row?.count);
}

/**
 * Commands that were lost, or carried out twice, by another lock or without having been asked for; a sentence for each
 * fault.
 */
export async function commandFaults(
  server: PostgresServer,
  database: string,
  diaries: readonly ChaosDiary[],
  { macOf, unknown }: SentCommands,
): Promise<string[]> {
  const faults: string[] = [];
  const doneBy = new Map<number, string[]>();
  for (const { mac, carriedOut } of diaries)
    for (const id of carriedOut) doneBy.set(id, [...(doneBy.get(id) ?? []), mac]);
  for (const [id, mac] of macOf) {
    const macs = doneBy.get(id) ?? [];
    if (macs.length !== 1 || macs[0] !== mac)
      faults.push(`command ${id} for ${mac} was carried out by ${macs.length === 0 ? 'none' : macs.join(', ')}`);
  }
  const unconfirmed = [...doneBy.keys()].filter((id) => !macOf.has(id));
  for (const id of unconfirmed) {
    const macs = doneBy.get(id) ?? [];
    if (macs.length > 1) faults.push(`command ${id}, which was not confirmed, was carried out by ${macs.join(', ')}`);
  }
  // Each request that got no answer may have stored a command.
  if (unconfirmed.length > unknown)
    faults.push(
      `${unconfirmed.length} commands were carried out unconfirmed, but only ${unknown} requests got no answer`,
    );
  const rows = await server.query(database, `SELECT id, state FROM command WHERE state <> 'done'`);
  for (const { id, state } of rows) faults.push(`command ${String(id)} is still ${String(state)} after the run`);
  return faults;
}
