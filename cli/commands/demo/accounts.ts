/**
 * Creates the demo's merchant, locks, webhook URL and API key at the first start, and stores their names and secrets in
 * a file of the data folder, so that the next start continues with them.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fleetMacs } from '../../../firmware-sim/fleet/fleet.js';
import { invitationPath } from '../../../gateway/console/invitation-link.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { Days, Minutes } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { GatewayClient } from '../../client.js';

const MERCHANT = 'Demo';
const MINUTES_PER_DAY = Days(1) / Minutes(1);

/** The content of the file. */
export interface DemoAccounts {
  readonly seed: string;
  readonly locks: readonly { readonly mac: Mac; readonly secret: string }[];
  readonly webhookPort: number;
  readonly webhookSecret: string;
  /** An API key of the demo's merchant. */
  readonly apiKey: string;
  /** Whether the accounts were just created. */
  readonly isNew: boolean;
}

/** The options of a first start. */
export interface NewDemoOptions {
  readonly seed: string;
  readonly locks: number;
}

/**
 * Reads the accounts from the data folder, or creates them.
 * @param choosePort chooses the receiver's port at the first start; 0 for any free port
 * @throws LockgateError `bad-demo-file` if the file can't be read
 */
export async function openDemoAccounts(
  gateway: Gateway,
  data: string,
  options: NewDemoOptions,
  choosePort: () => Promise<number>,
): Promise<DemoAccounts> {
  const file = path.join(data, 'demo', 'accounts.json');
  if (!existsSync(file)) return writeAccounts(file, await createAccounts(gateway, options, await choosePort()));
  const stored = readAccounts(file);
  // The key may be revoked, or missing in the file of an older version.
  const { apiKey } = stored;
  if (apiKey !== undefined && (await gateway.merchants.apiKeys.check(apiKey)) !== undefined)
    return { ...stored, apiKey, isNew: false };
  return { ...writeAccounts(file, { ...stored, apiKey: await createKey(gateway) }), isNew: false };
}

/** The name of the dashboard's user. */
const DASHBOARD_USER = 'demo';

/**
 * How to open the dashboard: a link with which its user chooses a password, once; later the page where the user logs
 * in.
 */
export async function dashboardText(gateway: Gateway, address: string): Promise<string> {
  const { store, merchants } = gateway;
  // The merchant was added with the accounts; 0 is no merchant's id.
  const merchantId = (await store.listMerchants()).find(({ name }) => name === MERCHANT)?.id ?? 0;
  if ((await store.people.findLogin(merchantId, DASHBOARD_USER)) !== null)
    return `${address}/ (log in as ${DASHBOARD_USER} of the merchant ${MERCHANT})`;
  // This replaces the link that an earlier start printed.
  const { token } = await merchants.invitations.create(merchantId, { username: DASHBOARD_USER, role: 'owner' });
  return `${address}${invitationPath(token)} (one use: choose a password)`;
}

/** How to open the operators' page: a link that works once; a later one comes from `lockgate console`. */
export async function consoleText(gateway: Gateway, address: string): Promise<string> {
  const client = new GatewayClient({ gateway: address, token: gateway.operatorToken });
  const { token } = await client.post<{ readonly token: string }>('/console/links', {});
  return `${address}/#${token} (one use, within 5 minutes; later: npx lockgate console)`;
}

function writeAccounts(file: string, accounts: DemoAccounts): DemoAccounts {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, `${JSON.stringify(accounts, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return accounts;
}

async function createKey(gateway: Gateway): Promise<string> {
  return (await gateway.merchants.apiKeys.create(MERCHANT, 'demo')).text;
}

function readAccounts(file: string): Omit<DemoAccounts, 'apiKey'> & { readonly apiKey?: string } {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as DemoAccounts;
  } catch {
    throw new LockgateError('bad-demo-file', `${file} can't be read: remove it and start again`);
  }
}

async function createAccounts(gateway: Gateway, { seed, locks }: NewDemoOptions, port: number): Promise<DemoAccounts> {
  // With the current minute, fleetMacs chooses MACs such that a lock soon sends its daily ping.
  const minuteOfDay = Math.floor(gateway.clock.now() / Minutes(1)) % MINUTES_PER_DAY;
  const webhookPort = port === 0 ? await anyFreePort() : port;
  await ignoringCode('merchant-exists', () => gateway.accounts.addMerchant(MERCHANT));
  const { secret } = await gateway.accounts.addWebhookUrl({
    merchant: MERCHANT,
    url: `http://127.0.0.1:${webhookPort}/`,
  });
  const provisioned: { mac: Mac; secret: string }[] = [];
  for (const mac of fleetMacs(seed, locks, minuteOfDay))
    provisioned.push({ mac, secret: await provision(gateway, mac) });
  const apiKey = await createKey(gateway);
  return { seed, locks: provisioned, webhookPort, webhookSecret: secret, apiKey, isNew: true };
}

/** Adds the lock. If an interrupted first start has added it already, rotates its secret. */
async function provision(gateway: Gateway, mac: Mac): Promise<string> {
  const added = await ignoringCode('device-exists', () => {
    return gateway.accounts.addDevice({ mac, merchant: MERCHANT, simulated: true });
  });
  return added?.secret ?? (await gateway.accounts.rotateLockSecret(mac));
}

/** Runs `work`. Returns undefined if it fails with this error code. */
async function ignoringCode<T>(code: string, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof LockgateError && error.code === code) return undefined;
    throw error;
  }
}

/** A port that no program uses now. */
async function anyFreePort(): Promise<number> {
  const { createServer } = await import('node:net');
  return await new Promise((resolve) => {
    const probe = createServer();
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
