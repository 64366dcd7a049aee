/**
 * The secrets of replayed and simulated locks: read from a file, or created through the operator's interface. No
 * message contains a secret.
 */
import { readFileSync, statSync } from 'node:fs';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac, type Mac, parseMac } from '../../../../proto/wire/mac.js';
import type { GatewayClient } from '../../../client.js';

/** Enough for some 100,000 locks. */
const SECRETS_BYTES = 8 * 1024 * 1024;

/** The longest secret that is accepted; the gateway's have 43 characters. */
const SECRET_CHARACTERS = 256;

/** How many locks a message names. */
const NAMED_MOST = 3;

export type Secrets = ReadonlyMap<Mac, string>;

/**
 * Reads `mac,secret` lines. A first line with just these two words is a header; empty lines are ignored.
 *
 * @throws LockgateError `input-secrets` with file and line for one that can't be read
 */
export function readSecrets(file: string): Secrets {
  const secrets = new Map<Mac, string>();
  for (const [index, text] of readText(file).split(/\r?\n/).entries()) {
    const line = index === 0 ? text.replace(/^\ufeff/, '') : text;
    if (line.trim() === '' || (index === 0 && /^\s*"?mac"?\s*,\s*"?secret"?\s*$/i.test(line))) continue;
    const comma = line.indexOf(',');
    const refuse = (message: string): LockgateError => {
      return new LockgateError('input-secrets', `${file}:${index + 1}: ${message}`);
    };
    if (comma === -1) throw refuse('there is no comma: expected MAC,SECRET');
    const mac = parseMac(cell(line.slice(0, comma)));
    if (!mac.ok) throw refuse(mac.error.message);
    const secret = cell(line.slice(comma + 1));
    if (secret === '' || secret.length > SECRET_CHARACTERS || /[",]/.test(secret))
      throw refuse(`the secret is empty or invalid: expected 1 to ${SECRET_CHARACTERS} characters after the comma`);
    if (secrets.has(mac.value)) throw refuse(`${formatMac(mac.value)} is listed twice: expected each lock once`);
    secrets.set(mac.value, secret);
  }
  return secrets;
}

function cell(text: string): string {
  const trimmed = text.trim();
  return /^".*"$/.test(trimmed) ? trimmed.slice(1, -1).trim() : trimmed;
}

function readText(file: string): string {
  try {
    if (statSync(file).size > SECRETS_BYTES)
      throw new LockgateError('input-secrets', `${file} has more than ${SECRETS_BYTES / 1024 / 1024} MiB of secrets`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof LockgateError) throw error;
    throw new LockgateError('input-secrets', `${file} can’t be read: ${(error as Error).message}`);
  }
}

/** @throws LockgateError `input-secrets` where a lock has none */
export function needSecrets(secrets: Secrets, macs: ReadonlySet<Mac>, file: string): void {
  const missing = [...macs].filter((mac) => !secrets.has(mac));
  if (missing.length > 0) throw new LockgateError('input-secrets', `${file} has no secret for ${listed(missing)}`);
}

/** Concurrent rotations: the gateway puts concurrent ones into one transaction. */
const ROTATED_AT_ONCE = 32;

/** How many locks are added with one call, atomically. Far below the gateway's limit. */
const ADDED_AT_ONCE = 5_000;

interface DeviceJson {
  readonly mac: string;
  readonly simulated: boolean;
}

/**
 * Adds unknown locks as simulated ones, and gives known simulated ones a new secret. Nothing is changed where one of
 * them is a real lock, which a new secret would disconnect.
 *
 * @throws LockgateError `input-provision` for a real lock, or the gateway's error
 */
export async function provision(
  client: GatewayClient,
  macs: ReadonlySet<Mac>,
  merchant: string | undefined,
  signal: AbortSignal,
): Promise<Secrets> {
  const { devices } = await client.get<{ devices: DeviceJson[] }>('/devices');
  const known = new Map(devices.map(({ mac, simulated }) => [mac, simulated]));
  const real = [...macs].filter((mac) => known.get(formatMac(mac)) === false);
  if (real.length > 0) {
    const are = `${listed(real)} ${real.length === 1 ? 'is' : 'are'}`;
    throw new LockgateError(
      'input-provision',
      `${are} not simulated, and a new secret would disconnect a real lock: give --secrets instead`,
    );
  }
  const secrets = new Map<Mac, string>();
  const strange = [...macs].filter((mac) => !known.has(formatMac(mac)));
  await addSimulated(client, strange, merchant, { secrets, signal });
  await rotateSecrets(
    client,
    [...macs].filter((mac) => known.has(formatMac(mac))),
    { secrets, signal },
  );
  return secrets;
}

/** Where secrets are collected, and the signal that ends the work early. */
interface Keeping {
  readonly secrets: Map<Mac, string>;
  readonly signal: AbortSignal;
}

async function addSimulated(
  client: GatewayClient,
  macs: readonly Mac[],
  merchant: string | undefined,
  { secrets, signal }: Keeping,
): Promise<void> {
  for (let from = 0; from < macs.length && !signal.aborted; from += ADDED_AT_ONCE) {
    const batch = macs.slice(from, from + ADDED_AT_ONCE);
    const { devices } = await client.post<{ devices: { mac: string; secret: string }[] }>('/devices/import', {
      devices: batch.map((mac) => ({ mac: formatMac(mac) })),
      simulated: true,
      ...(merchant !== undefined && { merchant }),
    });
    const bySpelling = new Map(devices.map(({ mac, secret }) => [mac, secret]));
    for (const mac of batch) secrets.set(mac, bySpelling.get(formatMac(mac)) ?? '');
  }
}

async function rotateSecrets(client: GatewayClient, macs: readonly Mac[], { secrets, signal }: Keeping): Promise<void> {
  let next = 0;
  const rotate = async (): Promise<void> => {
    for (let mac = macs[next++]; mac !== undefined && !signal.aborted; mac = macs[next++]) {
      const where = `/devices/${encodeURIComponent(formatMac(mac))}/rotate-secret`;
      secrets.set(mac, (await client.post<{ secret: string }>(where, {})).secret);
    }
  };
  await Promise.all(Array.from({ length: ROTATED_AT_ONCE }, rotate));
}

function listed(macs: readonly Mac[]): string {
  const named = macs.slice(0, NAMED_MOST).map(formatMac).join(', ');
  return macs.length > NAMED_MOST ? `${named} and ${macs.length - NAMED_MOST} more` : named;
}
