/**
 * The secrets of replayed and simulated locks: read from a file, or created through the operator's interface. No error
 * message may contain a secret.
 */
import { readFileSync, statSync } from 'node:fs';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac, type Mac, parseMac } from '../../../../proto/wire/mac.js';
import type { GatewayClient } from '../../../client.js';
import { listAllDevices } from '../../device/all-devices.js';

/** The maximum size of a file of secrets; enough for some 100,000 locks. */
const MAX_FILE_BYTES = 8 * 1024 * 1024;

/** The maximum length of a secret. Those that the gateway creates have 36 characters. */
const MAX_SECRET_CHARACTERS = 256;

/** A message names at most this many locks, and counts the remaining ones. */
const MAX_NAMED_LOCKS = 3;

/** The secret of each lock. */
export type Secrets = ReadonlyMap<Mac, string>;

/**
 * Reads lines of `MAC,SECRET`. A first line `mac,secret` is a header; empty lines are ignored.
 *
 * @throws LockgateError `input-secrets` if the file or a line can't be read; the message names file and line
 */
export function readSecrets(file: string): Secrets {
  const secrets = new Map<Mac, string>();
  for (const [index, text] of readText(file).split(/\r?\n/).entries()) {
    // Some editors put a byte order mark before the first line.
    const line = index === 0 ? text.replace(/^\ufeff/, '') : text;
    if (line.trim() === '' || (index === 0 && /^\s*"?mac"?\s*,\s*"?secret"?\s*$/i.test(line))) continue;
    const comma = line.indexOf(',');
    const refuse = (message: string): LockgateError => {
      return new LockgateError('input-secrets', `${file}:${index + 1}: ${message}`);
    };
    if (comma === -1) throw refuse('there is no comma: expected MAC,SECRET');
    const mac = parseMac(unquote(line.slice(0, comma)));
    if (!mac.ok) throw refuse(mac.error.message);
    const secret = unquote(line.slice(comma + 1));
    if (secret === '' || secret.length > MAX_SECRET_CHARACTERS || /[",]/.test(secret))
      throw refuse(`the secret is empty or invalid: expected 1 to ${MAX_SECRET_CHARACTERS} characters after the comma`);
    if (secrets.has(mac.value)) throw refuse(`${formatMac(mac.value)} is listed twice: expected each lock once`);
    secrets.set(mac.value, secret);
  }
  return secrets;
}

function unquote(text: string): string {
  const trimmed = text.trim();
  return /^".*"$/.test(trimmed) ? trimmed.slice(1, -1).trim() : trimmed;
}

function readText(file: string): string {
  try {
    if (statSync(file).size > MAX_FILE_BYTES)
      throw new LockgateError('input-secrets', `${file} is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof LockgateError) throw error;
    throw new LockgateError('input-secrets', `${file} can’t be read: ${(error as Error).message}`);
  }
}

/** @throws LockgateError `input-secrets` if a lock of `macs` has no secret */
export function requireSecrets(secrets: Secrets, macs: ReadonlySet<Mac>, file: string): void {
  const missing = [...macs].filter((mac) => !secrets.has(mac));
  if (missing.length > 0) throw new LockgateError('input-secrets', `${file} has no secret for ${nameLocks(missing)}`);
}

/**
 * How many new secrets are requested at the same time. The gateway commits requests that arrive together in one
 * transaction.
 */
const MAX_CONCURRENT_ROTATIONS = 32;

/** Locks per call; a call adds all its locks or none. Far below the gateway's limit. */
const LOCKS_PER_CALL = 5_000;

interface DeviceJson {
  readonly mac: string;
  readonly simulated: boolean;
}

/**
 * Adds unknown locks as simulated locks, and gives known simulated locks a new secret. If one of `macs` is a real lock,
 * nothing is changed, because a new secret would disconnect it.
 *
 * @throws LockgateError `input-provision` for a real lock, or the gateway's error
 */
export async function provisionLocks(
  client: GatewayClient,
  macs: ReadonlySet<Mac>,
  merchant: string | undefined,
  signal: AbortSignal,
): Promise<Secrets> {
  const devices = await listAllDevices<DeviceJson>(client);
  /** For each lock of the gateway, whether it is simulated. */
  const isSimulatedByMac = new Map(devices.map(({ mac, simulated }) => [mac, simulated]));
  const isAtGateway = (mac: Mac): boolean => isSimulatedByMac.has(formatMac(mac));
  const realMacs = [...macs].filter((mac) => isSimulatedByMac.get(formatMac(mac)) === false);
  if (realMacs.length > 0) {
    const subject = `${nameLocks(realMacs)} ${realMacs.length === 1 ? 'is' : 'are'}`;
    throw new LockgateError(
      'input-provision',
      `${subject} not simulated, and a new secret would disconnect a real lock: give --secrets instead`,
    );
  }
  const secrets = new Map<Mac, string>();
  const unknownMacs = [...macs].filter((mac) => !isAtGateway(mac));
  await addSimulated(client, unknownMacs, merchant, { secrets, signal });
  const simulatedMacs = [...macs].filter(isAtGateway);
  await rotateSecrets(client, simulatedMacs, { secrets, signal });
  return secrets;
}

/** The map that collects the secrets, and the signal that cancels the work. */
interface Provisioning {
  readonly secrets: Map<Mac, string>;
  readonly signal: AbortSignal;
}

async function addSimulated(
  client: GatewayClient,
  macs: readonly Mac[],
  merchant: string | undefined,
  { secrets, signal }: Provisioning,
): Promise<void> {
  for (let from = 0; from < macs.length && !signal.aborted; from += LOCKS_PER_CALL) {
    const batch = macs.slice(from, from + LOCKS_PER_CALL);
    const { devices } = await client.post<{ devices: { mac: string; secret: string }[] }>('/devices/import', {
      devices: batch.map((mac) => ({ mac: formatMac(mac) })),
      simulated: true,
      ...(merchant !== undefined && { merchant }),
    });
    const secretsByMacText = new Map(devices.map(({ mac, secret }) => [mac, secret]));
    for (const mac of batch) secrets.set(mac, secretsByMacText.get(formatMac(mac)) ?? '');
  }
}

async function rotateSecrets(
  client: GatewayClient,
  macs: readonly Mac[],
  { secrets, signal }: Provisioning,
): Promise<void> {
  let next = 0;
  const rotate = async (): Promise<void> => {
    for (let mac = macs[next++]; mac !== undefined && !signal.aborted; mac = macs[next++]) {
      const requestPath = `/devices/${encodeURIComponent(formatMac(mac))}/rotate-secret`;
      secrets.set(mac, (await client.post<{ secret: string }>(requestPath, {})).secret);
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_ROTATIONS }, rotate));
}

function nameLocks(macs: readonly Mac[]): string {
  const named = macs.slice(0, MAX_NAMED_LOCKS).map(formatMac).join(', ');
  return macs.length > MAX_NAMED_LOCKS ? `${named} and ${macs.length - MAX_NAMED_LOCKS} more` : named;
}
