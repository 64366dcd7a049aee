/**
 * The progress of flushing a run (consecutive uplinks of the log, held in memory) into the log's two indexes, by key
 * and by lock, slice by slice and in the order of the index. Does no I/O: the caller writes the entries that it takes.
 */
import type { IdList } from './id-list.js';
import type { UplinkRun } from './uplink-memtable.js';

/** Positions in the sorted lists: of credentials and their keys, and of devices and their uplink ids. */
interface Position {
  readonly credential: number;
  readonly key: number;
  readonly device: number;
  readonly id: number;
}

export class IndexFlush {
  /** The id of the run's last uplink. */
  readonly lastId: number;
  readonly #run: UplinkRun;
  readonly #credentials: readonly number[];
  readonly #devices: readonly number[];
  /* The next key: the index of its credential, and its index among the credential's keys. */
  #credentialIndex = 0;
  #keyIndex = 0;
  /* The next id: the index of its device, and its index among the device's ids. */
  #deviceIndex = 0;
  #idIndex = 0;

  constructor(run: UplinkRun) {
    this.#run = run;
    this.lastId = run.lastId;
    this.#credentials = [...run.keys.keys()].sort((a, b) => a - b);
    this.#devices = [...run.devices.keys()].sort((a, b) => a - b);
  }

  /** The noted hint of an uplink of the run, see {@link UplinkRun.hints}. */
  notedHint(id: number): number | null | undefined {
    return this.#run.hints.get(id);
  }

  get isDone(): boolean {
    return this.#credentialIndex === this.#credentials.length && this.#deviceIndex === this.#devices.length;
  }

  get position(): Position {
    return { credential: this.#credentialIndex, key: this.#keyIndex, device: this.#deviceIndex, id: this.#idIndex };
  }

  /** Goes back to a position after a rollback. */
  rewind({ credential, key, device, id }: Position): void {
    this.#credentialIndex = credential;
    this.#keyIndex = key;
    this.#deviceIndex = device;
    this.#idIndex = id;
  }

  /** Takes the next `count` uplinks in the order of keys and passes each to `put`. */
  takeKeys(count: number, put: (credentialId: number, boot: number, sequence: number, id: number) => void): void {
    for (let remaining = count; remaining > 0 && this.#credentialIndex < this.#credentials.length; ) {
      const credentialId = this.#credentials[this.#credentialIndex] as number;
      const keys = this.#run.keys.get(credentialId);
      if (keys === undefined || this.#keyIndex >= keys.length) {
        this.#credentialIndex += 1;
        this.#keyIndex = 0;
        continue;
      }
      put(credentialId, keys.bootAt(this.#keyIndex), keys.sequenceAt(this.#keyIndex), keys.idAt(this.#keyIndex));
      remaining -= 1;
      this.#keyIndex += 1;
      if (this.#keyIndex < keys.length) continue;
      this.#credentialIndex += 1;
      this.#keyIndex = 0;
    }
  }

  /** Takes the next `count` uplinks in the order of devices and passes each to `put`. */
  takeDevices(count: number, put: (deviceId: number, id: number) => void): void {
    for (let remaining = count; remaining > 0 && this.#deviceIndex < this.#devices.length; ) {
      const deviceId = this.#devices[this.#deviceIndex] as number;
      const ids = this.#run.devices.get(deviceId) as IdList;
      if (this.#idIndex >= ids.length) {
        this.#deviceIndex += 1;
        this.#idIndex = 0;
        continue;
      }
      put(deviceId, ids.at(this.#idIndex));
      remaining -= 1;
      this.#idIndex += 1;
      if (this.#idIndex < ids.length) continue;
      this.#deviceIndex += 1;
      this.#idIndex = 0;
    }
  }
}
