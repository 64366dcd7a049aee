/**
 * Makes a backup while locks send, and restores it. The locks record which pings were acknowledged before the backup
 * started, and the merchant records the ids under which events arrived.
 */
import { copyFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { isBehind, LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import { checkDatabase } from '../../../gateway/store/sqlite/check/check.js';
import { runLockgate } from '../cli/program.js';
import { ChangeSignal } from '../clocks/change-signal.js';
import { MERCHANT, openGateway, testBytes, testMac } from '../gateway/test-gateway.js';
import { testReceiver } from '../gateway/test-receiver.js';
import { eventually } from '../gateway/webhook-setup.js';
import { TestLock } from '../mqtt/test-lock.js';
import { type Teardown, tempFolder } from './temp-folder.js';

/** The size of the run. */
export interface BackupRunOptions {
  readonly locks: number;
  /** The number of pings that are acknowledged before the backup starts; locks send until it has finished. */
  readonly ackedBeforeBackup: number;
}

/** What the command, the locks, the merchant and the restored store say. */
export interface BackupRun {
  /** The exit code of the command. */
  readonly code: number | null;
  /** The JSON that the command printed. */
  readonly printed: Record<string, unknown>;
  /** Pings, as `MAC sequence`, that were acknowledged before the backup started. */
  readonly acked: readonly string[];
  /** The number of pings that were acknowledged during the backup. */
  readonly ackedDuringBackup: number;
  /** The locks' pings in the restored store. */
  readonly restored: ReadonlySet<string>;
  /** The findings of `db check` in the restored store before its start and after its close. */
  readonly damage: readonly unknown[];
  /** Pings that reached the merchant with more than one id. */
  readonly withSeveralIds: readonly string[];
  /** Pings of the restored store that the merchant never got. */
  readonly undelivered: readonly string[];
}

/** The ids of the only merchant and of its webhook URL. */
const [MERCHANT_ID, URL_ID] = [1, 1];

/** Makes the backup with `lockgate db backup`, and restores it. */
export async function runBackup(test: Teardown, { locks, ackedBeforeBackup }: BackupRunOptions): Promise<BackupRun> {
  const data = tempFolder(test);
  const gateway = await openGateway(test, data);
  await gateway.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(test);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const acked: string[] = [];
  const changeSignal = new ChangeSignal();
  let isBackupDone = false;
  const sending = Array.from({ length: locks }, async (_, index) => {
    const mac = testMac(index + 1);
    const { secret } = await gateway.accounts.addDevice({ mac });
    const lock = await TestLock.connect(test, gateway.mqttPort, mac, secret);
    for (let sequence = 1; !isBackupDone; sequence += 1) {
      await lock.send(testBytes(sequence));
      acked.push(`${mac} ${sequence}`);
      changeSignal.notify();
    }
  });
  await changeSignal.waitUntil(
    () => acked.length >= ackedBeforeBackup,
    60,
    () => `${ackedBeforeBackup} pings`,
  );
  const out = path.join(tempFolder(test), 'backup.sqlite');
  const ackedBefore = [...acked];
  const gatewayFlags = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const backup = await runLockgate(['db', 'backup', '--out', out, ...gatewayFlags, '--json']);
  const ackedDuringBackup = acked.length - ackedBefore.length;
  isBackupDone = true;
  await Promise.all(sending);
  await gateway.close();
  const printed = JSON.parse(backup.stdout.join('') || '{}') as Record<string, unknown>;
  const restoredStore = await restore(test, data, out);
  const idsByPing = new Map<string, Set<unknown>>();
  for (const { json } of receiver.requests) {
    const ping = `${String(json.mac_addr).replaceAll(':', '')} ${json.sequence}`;
    idsByPing.set(ping, (idsByPing.get(ping) ?? new Set()).add(json.event_id));
  }
  return {
    code: backup.exit?.code ?? null,
    printed,
    acked: ackedBefore,
    ackedDuringBackup,
    ...restoredStore,
    withSeveralIds: [...idsByPing].filter(([, ids]) => ids.size > 1).map(([ping]) => ping),
    undelivered: [...restoredStore.restored].filter((ping) => !idsByPing.has(ping)),
  };
}

/**
 * Restores as the documentation says: copies the file, its checksums (`.sums`) and the key into a new folder, runs
 * `db check`, starts.
 */
async function restore(test: Teardown, data: string, backup: string): Promise<Pick<BackupRun, 'restored' | 'damage'>> {
  const folder = path.join(tempFolder(test), 'restored');
  mkdirSync(folder, { mode: 0o700 });
  const file = path.join(folder, 'lockgate.sqlite');
  copyFileSync(backup, file);
  copyFileSync(`${backup}.sums`, `${file}.sums`);
  copyFileSync(path.join(data, 'key'), path.join(folder, 'key'));
  const checkBeforeStart = await checkDatabase(file);
  const gateway = await openGateway(test, folder);
  const events = await gateway.store.readEvents(MERCHANT_ID, LOG_START, 1e6);
  // Deliveries that were under way at the moment of the backup are repeated. The cursor of a webhook URL is the id of
  // the last event whose delivery is finished.
  const lastId = events.at(-1)?.id ?? 0;
  await eventually('the last webhook', async () => {
    return isBehind((await gateway.store.webhooks.find(URL_ID))?.cursor ?? LOG_START, lastId);
  });
  await gateway.close();
  const checkAfterClose = await checkDatabase(file);
  return {
    restored: new Set(events.map(({ mac, sequence }) => `${mac} ${sequence}`)),
    damage: [...checkBeforeStart.damage, ...checkAfterClose.damage],
  };
}
