import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Config } from '../../gateway/config.js';
import type { Gateway } from '../../gateway/gateway.js';
import { formatMac } from '../../proto/mac.js';
import { addressFile } from '../client.js';
import { rebuiltText } from '../event-line.js';
import { untilInterrupted } from '../interrupt.js';
import { note, paint, print } from '../output.js';

/** The settings as flags, by the keys of the settings table. */
export type SettingFlags = Readonly<Partial<Record<keyof Config, string>>>;

/**
 * The flags of the settings table. They stand here as well as there so that help needs no part of the gateway; a test
 * holds the two together.
 */
export const SETTING_FLAGS: readonly (readonly [flag: string, help: string])[] = [
  ['--data <folder>', 'The data folder (default: ./data).'],
  ['--mqtt-host <address>', 'Where locks connect (default: 127.0.0.1).'],
  ['--mqtt-port <port>', 'MQTT without TLS; 0 lets the system choose (default: 1883).'],
  ['--operator-host <address>', 'Where the operator’s interface listens (default: 127.0.0.1).'],
  ['--operator-port <port>', 'The operator’s interface (default: 8081).'],
  ['--allow-webhook-range <ranges>', 'Addresses that webhooks may go to besides public ones, such as 127.0.0.0/8.'],
];

/** `lockgate serve` */
export function addServeCommand(program: Command): void {
  const serve = program.command('serve').description('Run the gateway.');
  for (const [flag, help] of SETTING_FLAGS) serve.option(flag, help);
  serve
    .addHelpText('after', '\nExample:\n  $ lockgate serve --data ./data --allow-webhook-range 127.0.0.0/8')
    .action(runGateway);
}

async function runGateway(flags: SettingFlags): Promise<void> {
  const { readConfig, resolveSettings } = await import('../../gateway/config.js');
  const { startGateway } = await import('../../gateway/gateway.js');
  const config = readConfig(resolveSettings(flags, process.env));
  const interrupted = untilInterrupted();
  const gateway = await startGateway(config);
  noteAddress(config, gateway);
  printReady(config, gateway);
  gateway.events.on('store-failed', ({ why }) => note(`${paint('red', 'store')}  ${why}`));
  gateway.events.on('state-rebuilt', ({ mac, why, from }) => {
    note(`${paint('red', 'store')}  ${formatMac(mac)}: ${rebuiltText({ why, from })}`);
  });
  gateway.events.on('url-disabled', ({ urlId, why }) =>
    note(`${paint('red', 'hook')}   URL ${urlId} disabled: ${why}`),
  );
  await interrupted.happened;
  note('Stopping: what was taken is stored and answered first.');
  await gateway.close();
  process.exitCode = 0;
}

/** So that the CLI finds this gateway without a flag. */
export function noteAddress(config: Config, gateway: Gateway): void {
  writeFileSync(addressFile(config.data), `http://${reachable(config.operatorHost)}:${gateway.operatorPort}\n`);
}

/** An address that one can connect to: a listener on all of them is reached on loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

function printReady(config: Config, gateway: Gateway): void {
  print(`Gateway ready, data in ${config.data} (${gateway.store.description}).`);
  print(`  locks      mqtt://${reachable(config.mqttHost)}:${gateway.mqttPort}`);
  print(`  operators  http://${reachable(config.operatorHost)}:${gateway.operatorPort}`);
  print('Ctrl-C stops it. Next: lockgate merchant add NAME, lockgate device add MAC, lockgate tail');
}
