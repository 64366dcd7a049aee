/**
 * Which commands have ended lately, as far as this gateway has reported. A command may end while it is being read from
 * the store as an unfinished one, for a lock that this gateway takes over, or together with new ones of other gateways.
 * So the dispatcher neither takes up again what has ended, nor reports an end twice. Pure.
 */
import type { CommandRecord, CommandState } from '../store/contract/command-record.js';
import { MAX_REMEMBERED_ENDS } from './command-terms.js';

export class CommandEnds {
  /** The last reported end of each command, by its id; the oldest first. */
  readonly #states = new Map<number, CommandState>();

  /**
   * Notes an end. Returns false if it was noted before. An end may follow another: an answer may come after its
   * command has expired.
   */
  note({ id, state }: Pick<CommandRecord, 'id' | 'state'>): boolean {
    if (this.#states.get(id) === state) return false;
    this.#states.set(id, state);
    const [oldest] = this.#states.keys();
    if (this.#states.size > MAX_REMEMBERED_ENDS && oldest !== undefined) this.#states.delete(oldest);
    return true;
  }

  has({ id }: Pick<CommandRecord, 'id'>): boolean {
    return this.#states.has(id);
  }
}
