/** The store's reads of locks and merchants, the same in each engine: each engine's reads extend them. */
import type { Mac } from '../../../proto/wire/mac.js';
import type { CredentialOwner, Device, DevicePage, DeviceReading, Phone } from '../contract/devices/device.js';
import type { QuarantinedMessage } from '../contract/log/log-entry.js';
import type { Merchant } from '../contract/merchants/merchant-store.js';
import { CredentialTables } from './devices/credentials.js';
import { DeviceTables } from './devices/devices.js';
import type { Kysely } from './kysely.js';
import { Registry } from './registry.js';
import type { Tables } from './schema.js';
import type { Dialect } from './table-parts.js';

export class TableReads {
  protected readonly credentialReads: CredentialTables;
  readonly #registry: Registry;
  readonly #devices: DeviceTables;

  /** @param readTables a connection that only reads */
  constructor(readTables: Kysely<Tables>, dialect: Dialect) {
    this.#registry = new Registry(readTables);
    this.#devices = new DeviceTables(readTables, dialect);
    this.credentialReads = new CredentialTables(readTables);
  }

  listMerchants(): Promise<Merchant[]> {
    return this.#registry.listMerchants();
  }

  findTakenMacs(macs: readonly Mac[]): Promise<Mac[]> {
    return this.#devices.findTakenMacs(macs);
  }

  listCredentials(): Promise<CredentialOwner[]> {
    return this.credentialReads.listCredentials();
  }

  listPhones(mac: Mac): Promise<Phone[]> {
    return this.credentialReads.listPhones(mac);
  }

  findDeviceId(mac: Mac): Promise<number | null> {
    return this.#devices.findDeviceId(mac);
  }

  listDevices(): Promise<DeviceReading[]> {
    return this.#devices.listDevices();
  }

  countDevices(merchantId?: number): Promise<number> {
    return this.#devices.countDevices(merchantId);
  }

  readDevices(page: DevicePage): Promise<Device[]> {
    return this.#devices.readDevices(page);
  }

  findDevices(deviceIds: readonly number[]): Promise<Device[]> {
    return this.#devices.findDevices(deviceIds);
  }

  findDevice(mac: Mac): Promise<DeviceReading | null> {
    return this.#devices.findDevice(mac);
  }

  readQuarantine(deviceId: number, limit: number): Promise<QuarantinedMessage[]> {
    return this.#registry.readQuarantine(deviceId, limit);
  }

  readMetadata(name: string): Promise<string | null> {
    return this.#registry.readMetadata(name);
  }
}
