/** Which duties this gateway has: what one gateway does for all. A duty changes hands when its holder's epoch ends. */
import { DUTIES, type Duties, type Duty } from '../../contract/slots/ownership.js';
import type { Claim as SlotClaim } from '../node-claim.js';
import type { Sql } from '../sql.js';
import type { Writes } from '../writes.js';

/** A duty with its last holder; null if it never had one. */
interface SeenDuty {
  readonly name: Duty;
  readonly slot: number | null;
  readonly epoch: number | null;
}

export class DutyClaims implements Duties {
  readonly #sql: Sql;
  readonly #writes: Pick<Writes, 'run'>;
  readonly #claim: Pick<SlotClaim, 'slot' | 'epoch'>;
  readonly #held = new Set<Duty>();
  #onGain: (duty: Duty) => void = () => undefined;

  constructor(sql: Sql, writes: Pick<Writes, 'run'>, claim: Pick<SlotClaim, 'slot' | 'epoch'>) {
    this.#sql = sql;
    this.#writes = writes;
    this.#claim = claim;
  }

  holds(duty: Duty): boolean {
    return this.#held.has(duty);
  }

  onGain(listener: (duty: Duty) => void): void {
    this.#onGain = listener;
  }

  /** Takes the duties that no gateway has, if their rows are still as they were read when they are written. */
  async takeFree(): Promise<void> {
    if (this.#held.size === DUTIES.length) return;
    const free = await this.#sql.all<SeenDuty>(
      `SELECT t.name, d.slot, d.epoch FROM unnest(@names::text[]) AS t (name) LEFT JOIN duty d ON d.name = t.name
       WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.slot = d.slot AND n.epoch = d.epoch)`,
      { names: [...DUTIES] },
    );
    if (free.length === 0) return;
    const { slot, epoch } = this.#claim;
    const taken = await this.#writes.run('take duties', (sql) =>
      sql.all<{ name: Duty }>(
        `WITH t AS (SELECT * FROM unnest(@names::text[], @slots::bigint[], @epochs::bigint[]) AS t (name, slot, epoch)),
           i AS (INSERT INTO duty (name, slot, epoch) SELECT name, @slot, @epoch FROM t WHERE slot IS NULL
             ON CONFLICT DO NOTHING RETURNING name),
           u AS (UPDATE duty d SET slot = @slot, epoch = @epoch FROM t
             WHERE d.name = t.name AND d.slot = t.slot AND d.epoch = t.epoch RETURNING d.name)
         SELECT name FROM i UNION ALL SELECT name FROM u`,
        {
          names: free.map(({ name }) => name),
          slots: free.map((each) => each.slot),
          epochs: free.map((each) => each.epoch),
          slot,
          epoch,
        },
      ),
    );
    for (const { name } of taken) {
      this.#held.add(name);
      this.#onGain(name);
    }
  }
}
