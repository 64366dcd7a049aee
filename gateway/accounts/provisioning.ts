/**
 * Adds many locks from one list. The whole list is checked first, and then all locks are added or none.
 */
import { afterThisTurn, type Clock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { formatMac, type Mac, parseMac } from '../../proto/wire/mac.js';
import { type Keys, makeLockSecret } from '../data-folder/keys.js';
import { type Fault, MAX_REPORTED_FAULTS, RequestFaults } from '../faults.js';
import type { NewDevice } from '../store/contract/devices/device.js';
import type { Labels } from '../store/contract/devices/device-labels.js';
import type { Store } from '../store/contract/store.js';
import { checkDescription, descriptionFault } from './lock-description.js';

/** Maximum number of locks in a list. Adding that many in one transaction delays pings for some 4 s. */
export const MAX_IMPORTED_DEVICES = 100_000;
/** Number of secrets that are made in one turn of the event loop. */
const SECRETS_PER_TURN = 1000;

export interface ImportedDevice {
  readonly mac: string;
  /** The merchant's name. */
  readonly merchant?: string | undefined;
  readonly name?: string | undefined;
  readonly labels?: Labels | undefined;
}

export interface ImportRequest {
  readonly devices: readonly ImportedDevice[];
  /** Resolves to the merchant of the locks that name none. Called only if there are such locks. */
  readonly merchant: () => Promise<string>;
  readonly simulated: boolean;
}

/**
 * Adds all locks of the list or none.
 *
 * @returns the locks with their secrets, in the order of the list
 * @throws RequestFaults `input-import` for unreadable or repeated MACs and bad names or labels
 * @throws LockgateError `device-exists`, `no-such-merchant`
 */
export async function importDevices(
  { store, keys, clock }: { readonly store: Store; readonly keys: Keys; readonly clock: Clock },
  { devices, merchant, simulated }: ImportRequest,
): Promise<{ readonly mac: Mac; readonly merchant: string; readonly secret: string }[]> {
  if (devices.length === 0 || devices.length > MAX_IMPORTED_DEVICES)
    throw new LockgateError('input-import', `${devices.length} locks: expected 1 to ${MAX_IMPORTED_DEVICES} at once`);
  const macs = readMacs(devices);
  refuseFaulty('input-import', devices, descriptionFault);
  const names = new Set((await store.listMerchants()).map(({ name }) => name));
  refuseFaulty('no-such-merchant', devices, ({ merchant }) =>
    merchant !== undefined && !names.has(merchant)
      ? { member: 'merchant', detail: `there is no merchant named ${JSON.stringify(merchant)}` }
      : undefined,
  );
  const taken = new Set(await store.findTakenMacs(macs));
  refuseFaulty('device-exists', macs, (mac) =>
    taken.has(mac) ? { member: 'mac', detail: `there is a device ${formatMac(mac)} already` } : undefined,
  );
  // Empty, and unused, if every lock of the list names its merchant.
  const defaultMerchant = devices.every(({ merchant }) => merchant !== undefined) ? '' : await merchant();
  const nowMs = clock.now();
  const newDevices: (NewDevice & { readonly secret: string })[] = [];
  for (const [index, mac] of macs.entries()) {
    const secret = makeLockSecret();
    const owner = devices[index]?.merchant ?? defaultMerchant;
    const described = checkDescription(devices[index] ?? {});
    const secretHash = keys.hashSecret(secret);
    newDevices.push({ mac, merchant: owner, simulated, secretHash, nowMs, secret, ...described });
    if (newDevices.length % SECRETS_PER_TURN === 0) await new Promise<void>((resolve) => afterThisTurn(resolve));
  }
  await store.addDevices(newDevices);
  return newDevices;
}

/** The MACs of the list. @throws RequestFaults `input-import` if one is invalid or listed twice */
function readMacs(devices: readonly ImportedDevice[]): Mac[] {
  const macs: Mac[] = [];
  /** The index at which each MAC occurs first. */
  const firstIndexes = new Map<Mac, number>();
  refuseFaulty('input-import', devices, ({ mac: text }, index) => {
    const mac = parseMac(text);
    if (!mac.ok) return { member: 'mac', detail: mac.error.message };
    macs.push(mac.value);
    const firstIndex = firstIndexes.get(mac.value);
    if (firstIndex === undefined) firstIndexes.set(mac.value, index);
    return firstIndex === undefined
      ? undefined
      : { member: 'mac', detail: `${formatMac(mac.value)} is at index ${firstIndex} already: expected each lock once` };
  });
  return macs;
}

/** Checks each item with `fault`, which returns its fault if it has one. @throws RequestFaults with all faults */
function refuseFaulty<T>(
  code: string,
  items: readonly T[],
  fault: (item: T, index: number) => { readonly member: string; readonly detail: string } | undefined,
): void {
  const faults: Fault[] = [];
  let count = 0;
  for (const [index, item] of items.entries()) {
    const itemFault = fault(item, index);
    if (itemFault === undefined) continue;
    count += 1;
    if (count <= MAX_REPORTED_FAULTS)
      faults.push({ pointer: `/devices/${index}/${itemFault.member}`, detail: itemFault.detail });
  }
  if (count === 0) return;
  const more = count > 1 ? `, and ${count - 1} more of the list can’t be added either` : '';
  throw new RequestFaults(code, `${faults[0]?.detail}${more}: nothing was added`, faults);
}
