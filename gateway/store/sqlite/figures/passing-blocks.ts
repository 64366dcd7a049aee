/**
 * Finds which events (stored pings) of the log pass a webhook URL's filter, for figures. Must be used inside a read
 * transaction.
 *
 * Whether an event passes depends on its bytes, and reading these for a long backlog at each count would take seconds.
 * An uplink's bytes never change, so the result is remembered in blocks of the log: one bit for each id. A block is
 * examined again only if some of its events were erased or deleted, or the filter or the labels of locks changed.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Labels } from '../../contract/devices/device-labels.js';
import { hasLabels, passesFilter, type WebhookFilter } from '../../contract/webhooks/webhook-filter.js';
import { matchesChecksum, type SummedRow } from '../../log/uplink-sum.js';
import { readLabels } from '../../tables/devices/label-column.js';

/** The number of ids of a block: 512 bytes of bits. */
const BLOCK_IDS = 4_096;

/** One block of the log: {@link BLOCK_IDS} ids from `number * BLOCK_IDS` on. */
interface Block {
  /** The last id that was examined. */
  examinedTo: number;
  /** The number of the merchant's events in the block up to that id. */
  events: number;
  /** One bit for each id: whether its event passes. */
  readonly bits: Uint8Array;
  /** The number of events that pass. */
  passing: number;
}

/** The URL whose filter is applied. */
export interface FilteredUrl {
  readonly id: number;
  readonly merchantId: number;
  readonly filter: WebhookFilter;
}

type EventRow = SummedRow & { readonly sum: number | null };

/** The prepared statements. */
interface Statements {
  readonly count: Statement;
  readonly events: Statement;
  readonly lastId: Statement;
  readonly labels: Statement;
}

/** The blocks of one URL. */
interface UrlBlocks {
  /** The filter and the locks with its labels, as text. If this changes, the blocks are examined again. */
  readonly key: string;
  readonly blocks: Map<number, Block>;
}

export class PassingBlocks {
  readonly #statements: Statements;
  readonly #byUrl = new Map<number, UrlBlocks>();

  constructor(db: Database) {
    // Acknowledgements have the kind 0 and erased uplinks -1: neither is an event.
    const isEvent = 'merchant_id = @merchantId AND kind > 0 AND id >= @from AND id <= @to';
    this.#statements = {
      count: db.prepare(`SELECT count(*) FROM uplink WHERE ${isEvent}`).pluck(),
      events: db.prepare(
        `SELECT id, device_id, merchant_id, credential_id, boot, sequence, digest, kind, bytes, received_at_ms,
           buffered, sum FROM uplink WHERE ${isEvent} ORDER BY id`,
      ),
      lastId: db.prepare('SELECT coalesce(max(id), 0) FROM uplink').pluck(),
      labels: db.prepare('SELECT id, labels FROM device WHERE labels IS NOT NULL ORDER BY id'),
    };
  }

  /** Forgets the URLs that are not in the set. */
  keepOnly(urlIds: ReadonlySet<number>): void {
    for (const id of this.#byUrl.keys()) if (!urlIds.has(id)) this.#byUrl.delete(id);
  }

  /** Returns the events of the URL's merchant after an id that pass its filter. */
  after(url: FilteredUrl, afterId: number): PassingEvents {
    const locks = this.#locksWithLabels(url.filter);
    const key = `${JSON.stringify(url.filter)} ${locks === undefined ? '' : [...locks].join()}`;
    let remembered = this.#byUrl.get(url.id);
    if (remembered?.key !== key) {
      remembered = { key, blocks: new Map() };
      this.#byUrl.set(url.id, remembered);
    }
    const { blocks } = remembered;
    const firstNumber = Math.floor((afterId + 1) / BLOCK_IDS);
    for (const number of blocks.keys()) if (number < firstNumber) blocks.delete(number);
    const lastNumber = Math.floor((this.#statements.lastId.get() as number) / BLOCK_IDS);
    for (let number = firstNumber; number <= lastNumber; number += 1)
      blocks.set(number, this.#examined(url, number, blocks.get(number), locks));
    return new PassingEvents(blocks, afterId);
  }

  /** The ids of the locks with the labels that the filter wants; undefined if it wants none. */
  #locksWithLabels({ labels }: WebhookFilter): ReadonlySet<number> | undefined {
    if (labels === null) return undefined;
    const rows = this.#statements.labels.iterate() as IterableIterator<{ id: number; labels: string }>;
    const ids = new Set<number>();
    for (const row of rows) if (hasLabels(readLabels(row.labels), labels)) ids.add(row.id);
    return ids;
  }

  /**
   * The block with this number, in which every event is examined. `before`: the block as of the last count, if there is
   * one; only its new events are examined, unless some of the examined ones were erased or deleted.
   */
  #examined(
    { merchantId, filter }: FilteredUrl,
    number: number,
    before: Block | undefined,
    locks: ReadonlySet<number> | undefined,
  ): Block {
    const { count, events } = this.#statements;
    const from = number * BLOCK_IDS;
    const to = from + BLOCK_IDS - 1;
    const isUnchanged =
      before !== undefined && count.get({ merchantId, from, to: before.examinedTo }) === before.events;
    const block: Block =
      isUnchanged && before !== undefined
        ? before
        : { examinedTo: from - 1, events: 0, bits: new Uint8Array(BLOCK_IDS / 8), passing: 0 };
    // The filter asks only whether a lock has the wanted labels. So a lock in `locks` is said to have exactly these,
    // and any other to have none.
    const labelsOf = (deviceId: number): Labels => (locks?.has(deviceId) ? (filter.labels ?? {}) : {});
    const rows = events.iterate({ merchantId, from: block.examinedTo + 1, to }) as IterableIterator<EventRow>;
    for (const row of rows) {
      block.events += 1;
      block.examinedTo = row.id;
      const { kind, device_id: deviceId } = row;
      const event = { kind, bytes: row.bytes as Buffer, isDamaged: !matchesChecksum(row), deviceId };
      if (!passesFilter(filter, event, labelsOf)) continue;
      setBit(block.bits, row.id - from);
      block.passing += 1;
    }
    return block;
  }
}

/** The events after an id that pass a filter. */
export class PassingEvents {
  readonly #blocks: ReadonlyMap<number, Block>;
  readonly #afterId: number;

  constructor(blocks: ReadonlyMap<number, Block>, afterId: number) {
    this.#blocks = blocks;
    this.#afterId = afterId;
  }

  /** Whether the event with this id is one of them. */
  has(id: number): boolean {
    const block = this.#blocks.get(Math.floor(id / BLOCK_IDS));
    return id > this.#afterId && block !== undefined && hasBit(block.bits, id % BLOCK_IDS);
  }

  /** How many events pass. */
  count(): number {
    let sum = 0;
    for (const [number, { bits, passing }] of this.#blocks) {
      sum += passing;
      // Of the first block, only the ids after the cursor count.
      for (let id = number * BLOCK_IDS; id <= this.#afterId; id += 1) if (hasBit(bits, id % BLOCK_IDS)) sum -= 1;
    }
    return sum;
  }

  /** The lowest id of those that are not in the set; undefined if there is none. */
  firstExcept(ids: ReadonlySet<number>): number | undefined {
    for (const number of [...this.#blocks.keys()].sort((a, b) => a - b)) {
      if (this.#blocks.get(number)?.passing === 0) continue;
      for (let id = number * BLOCK_IDS; id < (number + 1) * BLOCK_IDS; id += 1)
        if (this.has(id) && !ids.has(id)) return id;
    }
    return undefined;
  }
}

/* Bit `index` is in byte `index >> 3` (divided by 8), at place `index & 7` (the remainder). */
function setBit(bits: Uint8Array, index: number): void {
  bits[index >> 3] = (bits[index >> 3] ?? 0) | (1 << (index & 7));
}

function hasBit(bits: Uint8Array, index: number): boolean {
  return ((bits[index >> 3] ?? 0) & (1 << (index & 7))) !== 0;
}
