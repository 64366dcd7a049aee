/** The progress of flushing a run of uplinks into the indexes by key and by lock, each in its order, slice by slice. */
import type { IdList } from './id-list.js';
import type { UplinkRun } from './uplink-memtable.js';

interface Position {
  readonly credential: number;
  readonly name: number;
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
    return { credential: this.#credential, name: this.#key, device: this.#device, id: this.#id };
  }

  /** Goes back to a position, since what was taken after it was rolled back. */
  rewind({ credential, name, device, id }: Position): void {
    this.#credential = credential;
    this.#key = name;
    this.#device = device;
    this.#id = id;
  }

  /** Takes the next so many by key. */
  takeKeys(count: number, put: (credentialId: number, boot: number, sequence: number, id: number) => void): void {
    for (let left = count; left > 0 && this.#credential < this.#credentials.length; ) {
      const credentialId = this.#credentials[this.#credential] as number;
      const names = this.#run.keys.get(credentialId);
      if (names === undefined || this.#key >= names.length) {
        this.#credential += 1;
        this.#key = 0;
        continue;
      }
      put(credentialId, names.bootAt(this.#key), names.sequenceAt(this.#key), names.idAt(this.#key));
      left -= 1;
      this.#key += 1;
      if (this.#key < names.length) continue;
      this.#credential += 1;
      this.#key = 0;
    }
  }

  /** Takes the next so many by device. */
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
