/**
 * The progress of flushing a run of uplinks into the two indexes, by key and by lock, slice by slice and in the order
 * of the index. Does no I/O: the caller writes what it takes.
 */
import type { IdList } from './id-list.js';
import type { UplinkRun } from './uplink-memtable.js';

interface Position {
  readonly credential: number;
  readonly key: number;
  readonly device: number;
  readonly id: number;
}

export class IndexFlush {
  readonly lastId: number;
  readonly #run: UplinkRun;
  readonly #credentials: readonly number[];
  readonly #devices: readonly number[];
  #credential = 0;
  #key = 0;
  #device = 0;
  #id = 0;

  constructor(run: UplinkRun) {
    this.#run = run;
    this.lastId = run.lastId;
    this.#credentials = [...run.keys.keys()].sort((one, other) => one - other);
    this.#devices = [...run.devices.keys()].sort((one, other) => one - other);
  }

  get isDone(): boolean {
    return this.#credential === this.#credentials.length && this.#device === this.#devices.length;
  }

  get position(): Position {
    return { credential: this.#credential, key: this.#key, device: this.#device, id: this.#id };
  }

  /** Goes back to a position after a rollback. */
  rewind({ credential, key, device, id }: Position): void {
    this.#credential = credential;
    this.#key = key;
    this.#device = device;
    this.#id = id;
  }

  /** Takes the next `count` uplinks in the order of keys and passes each to `put`. */
  takeKeys(count: number, put: (credentialId: number, boot: number, sequence: number, id: number) => void): void {
    for (let left = count; left > 0 && this.#credential < this.#credentials.length; ) {
      const credentialId = this.#credentials[this.#credential] as number;
      const keys = this.#run.keys.get(credentialId);
      if (keys === undefined || this.#key >= keys.length) {
        this.#credential += 1;
        this.#key = 0;
        continue;
      }
      put(credentialId, keys.bootAt(this.#key), keys.sequenceAt(this.#key), keys.idAt(this.#key));
      left -= 1;
      this.#key += 1;
      if (this.#key < keys.length) continue;
      this.#credential += 1;
      this.#key = 0;
    }
  }

  /** Takes the next `count` uplinks in the order of devices and passes each to `put`. */
  takeDevices(count: number, put: (deviceId: number, id: number) => void): void {
    for (let left = count; left > 0 && this.#device < this.#devices.length; ) {
      const deviceId = this.#devices[this.#device] as number;
      const ids = this.#run.devices.get(deviceId) as IdList;
      if (this.#id >= ids.length) {
        this.#device += 1;
        this.#id = 0;
        continue;
      }
      put(deviceId, ids.at(this.#id));
      left -= 1;
      this.#id += 1;
      if (this.#id < ids.length) continue;
      this.#device += 1;
      this.#id = 0;
    }
  }
}
