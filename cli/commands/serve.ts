import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Config, SettingKey } from '../../gateway/config.js';
import type { Gateway } from '../../gateway/gateway.js';
import { LockgateError } from '../../proto/errors.js';
import { addressFile } from '../client.js';
import { untilInterrupted } from '../interrupt.js';
import { note, paint, print } from '../output.js';

/** The settings as flags, by the keys of the settings table. */
export type SettingFlags = Readonly<Partial<Record<SettingKey, string>>>;

/**
 * The flags of the settings table. They stand here as well as there so that help needs no part of the gateway; a test
 * holds the two together.
 */
export const SETTING_FLAGS: readonly (readonly [flag: string, help: string])[] = [
  ['--data <folder>', 'The data folder (default: ./data).'],
  ['--mqtt-host <address>', 'Where locks connect (default: 127.0.0.1).'],
  ['--mqtt-port <port>', 'MQTT without TLS; 0 lets the system choose (default: 1883).'],
  ['--mqtt-tls-host <address>', 'Where locks connect over TLS (default: 0.0.0.0).'],
  ['--mqtt-tls-port <port>', 'MQTT over TLS; 0 lets the system choose (default: 8883).'],
  ['--mqtt-tls-cert <file>', 'The certificate with its chain, PEM; TLS listens only where it is set.'],
  ['--mqtt-tls-key <file>', 'Its private key, PEM.'],
  ['--mqtt-per-address <count>', 'MQTT connections that one address may have; 0 for any number (default: 0).'],
  ['--operator-host <address>', 'Where the operator’s interface listens (default: 127.0.0.1).'],
  ['--operator-port <port>', 'The operator’s interface (default: 8081).'],
  ['--allow-webhook-range <ranges>', 'Addresses that webhooks may go to besides public ones, such as 127.0.0.0/8.'],
  ['--keep-days <days>', 'How long pings and findings are kept: 31 or more, or 0 for ever (default: 400).'],
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
  if (config.mqttTls !== null) process.on('SIGHUP', () => reloadTls(gateway));
  gateway.events.on('store-failed', ({ why }) => note(`${paint('red', 'store')}  ${why}`));
  gateway.events.on('url-disabled', ({ urlId, why }) =>
    note(`${paint('red', 'hook')}   URL ${urlId} disabled: ${why}`),
  );
  await interrupted.happened;
  note('Stopping: what was taken is stored and answered first.');
  await gateway.close();
  process.exitCode = 0;
}

/** A new certificate is for those who connect from now on; one that is wrong changes nothing. */
function reloadTls(gateway: Gateway): void {
  try {
    const { validTo, fingerprint } = gateway.reloadTls();
    note(`${paint('green', 'tls')}    the certificate was read again: valid until ${validTo}, SHA-256 ${fingerprint}`);
  } catch (error) {
    if (!(error instanceof LockgateError)) throw error;
    note(`${paint('red', 'tls')}    ${error.message}; the certificate that was in force stays`);
  }
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
  if (gateway.mqttTlsPort !== undefined)
    print(`             mqtts://${reachable(config.mqttTlsHost)}:${gateway.mqttTlsPort}`);
  print(`  operators  http://${reachable(config.operatorHost)}:${gateway.operatorPort}`);
  print('Ctrl-C stops it. Next: lockgate merchant add NAME, lockgate device add MAC, lockgate tail');
}
