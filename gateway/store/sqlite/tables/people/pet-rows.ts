/**
 * Reads and writes rows of pets, records that the specification of the merchants' interface has beside locks, in
 * hand-written SQL. An int64 is written and read as a bigint, since a JavaScript number has only 53 bits.
 */
import type { Database, Statement } from 'better-sqlite3';
import { parse, stringify } from 'lossless-json';
import type { NamedId, NewPet, Pet, PetProfile } from '../../../contract/merchants/people-store.js';

interface PetRow {
  readonly id: bigint;
  readonly name: string;
  readonly owner_id: string | null;
  readonly species: string | null;
  readonly breed: string | null;
  readonly status: string | null;
  readonly photo_urls: string;
  readonly category: string | null;
  readonly tags: string | null;
  /** The size of the text columns. */
  readonly bytes: bigint;
}

const TEXT_COLUMNS = ['name', 'owner_id', 'species', 'breed', 'status', 'photo_urls', 'category', 'tags'];
const TEXT_BYTES = TEXT_COLUMNS.map((column) => `ifnull(octet_length(${column}), 0)`).join(' + ');

/** A pet and the size of its text columns. */
export interface StoredPet {
  readonly pet: Pet;
  readonly bytes: number;
}

export class PetRows {
  readonly #insert: Statement;
  readonly #update: Statement;
  readonly #read: Statement;

  constructor(db: Database) {
    this.#insert = db.prepare(
      `INSERT INTO pet (merchant_id, id, name, owner_id, species, breed, photo_urls, created_at_ms, changed_at_ms)
       VALUES (?, ?, ?, ?, ?, ?, '[]', ?, ?)`,
    );
    this.#update = db.prepare(
      `UPDATE pet SET name = ?, photo_urls = ?, status = ?, category = ?, tags = ?, changed_at_ms = ?
       WHERE merchant_id = ? AND id = ?`,
    );
    this.#read = db
      .prepare(
        `SELECT id, ${TEXT_COLUMNS.join(', ')}, ${TEXT_BYTES} AS bytes FROM pet WHERE merchant_id = ? AND id = ?`,
      )
      .safeIntegers();
  }

  add(merchantId: number, id: bigint, { name, ownerId, species, breed }: NewPet, nowMs: number): void {
    this.#insert.run(merchantId, id, name, ownerId, species, breed, nowMs, nowMs);
  }

  update(merchantId: number, id: bigint, profile: PetProfile, nowMs: number): void {
    const { name, photoUrls, status, category, tags } = profile;
    const texts = [name, JSON.stringify(photoUrls), status, jsonText(category), jsonText(tags)];
    this.#update.run(...texts, nowMs, merchantId, id);
  }

  read(merchantId: number, id: bigint): StoredPet | undefined {
    const row = this.#read.get(merchantId, id) as PetRow | undefined;
    return row === undefined ? undefined : { pet: toPet(row), bytes: Number(row.bytes) };
  }
}

/** JSON with every digit of an id; null for a missing value. */
function jsonText(value: unknown): string | null {
  return value === null ? null : (stringify(value) ?? null);
}

/** Parses JSON that this file wrote; every number in it is an id, and becomes a bigint. */
function parseWithIds(text: string): unknown {
  return parse(text, null, (digits) => BigInt(digits));
}

function toPet(row: PetRow): Pet {
  return {
    id: row.id,
    name: row.name,
    ownerId: row.owner_id,
    species: row.species,
    breed: row.breed,
    status: row.status,
    photoUrls: JSON.parse(row.photo_urls) as string[],
    category: row.category === null ? null : (parseWithIds(row.category) as NamedId),
    tags: row.tags === null ? null : (parseWithIds(row.tags) as NamedId[]),
  };
}
