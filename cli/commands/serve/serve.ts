import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import type { Config, ResolvedSetting, SettingKey } from '../../../gateway/config.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { VERSION } from '../../../gateway/version.js';
import { systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { addressFile } from '../../client.js';
import { onHangUp, untilInterrupted } from '../../terminal/interrupt.js';
import { note, print } from '../../terminal/output.js';
import { collectRarely } from './heap-growth.js';

/** The settings as flags, by the keys of the settings table. */
export type SettingFlags = Readonly<Partial<Record<SettingKey, string>>>;

/** For a folder that has lost its store. */
export const NEW_FLAG = ['--new', 'Begin a new, empty store where the folder has lost the one that it had.'] as const;

/** What commands that run a gateway take. */
export interface RunFlags extends SettingFlags {
  readonly new?: boolean;
}

/**
 * The flags of the settings table. They stand here as well as there so that help needs no part of the gateway; a test
 * holds the two together.
 */
export const SETTING_FLAGS: readonly (readonly [flag: string, help: string])[] = [
  ['--data <folder>', 'The data folder (default: ./data).'],
  ['--key-file <file>', 'The key that secrets are encrypted with (default: key in the data folder).'],
  ['--mqtt-host <address>', 'Where locks connect (default: 127.0.0.1).'],
  ['--mqtt-port <port>', 'MQTT without TLS; 0 lets the system choose (default: 1883).'],
  ['--mqtt-tls-host <address>', 'Where locks connect over TLS (default: 0.0.0.0).'],
  ['--mqtt-tls-port <port>', 'MQTT over TLS; 0 lets the system choose (default: 8883).'],
  ['--mqtt-tls-cert <file>', 'The certificate with its chain, PEM; TLS listens only where it is set.'],
  ['--mqtt-tls-key <file>', 'Its private key, PEM.'],
  ['--mqtt-per-address <count>', 'MQTT connections that one address may have; 0 for any number (default: 0).'],
  ['--lock-uplinks-per-second <count>', 'Uplinks of a lock a second, on average; 0 for any number (default: 200).'],
  ['--lock-uplink-burst <count>', 'Of those at once (default: 2000).'],
  ['--lock-uplinks-per-day <count>', 'Uplinks of a lock a day; 0 for any number (default: 200000).'],
  ['--http-host <address>', 'Where merchants connect (default: 127.0.0.1).'],
  ['--http-port <port>', 'The merchants’ HTTP interface; 0 lets the system choose (default: 8080).'],
  ['--http-cors-origin <origins>', 'Whose pages may call it from a browser, such as https://example.com.'],
  ['--http-per-address <count>', 'HTTP connections that one address may have; 0 for any number (default: 1000).'],
  ['--trusted-proxies <ranges>', 'Proxies whose X-Forwarded-For counts, such as 10.0.0.0/8.'],
  ['--merchant-requests <rate>', 'HTTP requests of a merchant a second, on average; 0 for any number (default: 50).'],
  ['--merchant-requests-burst <count>', 'Of those at once, after a pause (default: 200).'],
  ['--merchant-bytes <rate>', 'Bytes of bodies a second; 0 for any amount (default: 1048576).'],
  ['--merchant-bytes-burst <bytes>', 'Of those at once (default: 8388608).'],
  ['--merchant-hashes <rate>', 'Passwords hashed or compared a minute; 0 for any number (default: 20).'],
  ['--merchant-hashes-burst <count>', 'Of those at once (default: 1000).'],
  ['--merchant-pets <count>', 'Pets that a merchant may keep; 0 for any number (default: 100000).'],
  ['--merchant-pet-bytes <bytes>', 'How large a pet may be (default: 16384).'],
  ['--merchant-users <count>', 'Users that a merchant may keep; 0 for any number (default: 1000000).'],
  ['--merchant-kept-bytes <bytes>', 'What a merchant may keep in all; 0 for any amount (default: 1073741824).'],
  ['--name-length <characters>', 'How long names may be; 0 for any length (default: 256).'],
  ['--stranger-requests <rate>', 'Requests of an address a second without a key; 0 for any number (default: 100).'],
  ['--stranger-requests-burst <count>', 'Of those at once (default: 1000).'],
  ['--operator-host <address>', 'Where the operator’s interface listens (default: 127.0.0.1).'],
  ['--operator-port <port>', 'The operator’s interface (default: 8081).'],
  ['--allow-webhook-range <ranges>', 'Addresses that webhooks may go to besides public ones, such as 127.0.0.0/8.'],
  ['--keep-days <days>', 'How long pings and findings are kept: 31 or more, or 0 for ever (default: 400).'],
  ['--log-format <format>', 'auto, pretty or json; auto is pretty on a terminal (default: auto).'],
  ['--log-level <level>', 'debug, info, warn, error or fatal (default: info).'],
];

/** `lockgate serve` */
export function addServeCommand(program: Command): void {
  const serve = program.command('serve').description('Run the gateway.');
  for (const [flag, help] of SETTING_FLAGS) serve.option(flag, help);
  serve.option(...NEW_FLAG);
  serve
    .addHelpText('after', '\nExample:\n  $ lockgate serve --data ./data --allow-webhook-range 127.0.0.0/8')
    .action(runGateway);
}

async function runGateway(flags: RunFlags): Promise<void> {
  collectRarely();
  const { misspeltVariables, readConfig, resolveSettings } = await import('../../../gateway/config.js');
  const { GatewayEvents } = await import('../../../gateway/events.js');
  const { startGateway } = await import('../../../gateway/gateway.js');
  const { logEvents } = await import('../../../gateway/log/log.js');
  const { loadRequestChecks } = await import('../../../gateway/http/operator/check-request.js');
  const { closeGateway, exitBroken } = await import('./gateway-end.js');
  const { openLog } = await import('./serve-log.js');
  const settings = resolveSettings(flags, process.env);
  const config = readConfig(settings);
  const { log, isJson } = openLog(config);
  for (const sentence of misspeltVariables(process.env)) log.warn({ event: 'setting-unknown' }, sentence);
  const interrupted = untilInterrupted();
  const events = new GatewayEvents();
  const stopLogging = logEvents(log, events, systemClock);
  try {
    const gateway = await startGateway(config, { events, settings, onBroken: exitBroken, makeNew: flags.new === true });
    noteAddress(config, gateway);
    printReady(config, gateway);
    // Loaded now, so that the first call neither waits for it nor lacks descriptors for it; a failure shows then.
    void loadRequestChecks().catch(() => undefined);
    onHangUp(() => rereadFiles(config, gateway, log));
    // On a terminal the lines above have said it.
    if (isJson) log.info(startedMembers(settings, gateway), 'started');
    await interrupted.happened;
    if (isJson) log.info({ event: 'stopping' }, 'stopping');
    else note('Stopping: what was taken is stored and answered first.');
    await closeGateway(gateway, (why) => log.fatal({ event: 'stop-hung' }, why));
    if (isJson) log.info({ event: 'stopped' }, 'stopped');
  } finally {
    stopLogging();
  }
  process.exitCode = 0;
}

/**
 * What SIGHUP asks for. A new certificate is for those who connect from now on; one that is wrong changes nothing. The
 * operator's token is looked at by itself, and settings hold until the next start.
 */
function rereadFiles({ mqttTls }: Config, gateway: Gateway, log: Logger): void {
  if (mqttTls === null) {
    log.info({ event: 'nothing-to-read' }, 'SIGHUP: there is nothing to read again, since no TLS certificate is set');
    return;
  }
  try {
    const { validTo, fingerprint } = gateway.reloadTls();
    log.info({ event: 'tls-read', valid_to: validTo, fingerprint }, `the certificate was read again: until ${validTo}`);
  } catch (error) {
    if (!(error instanceof LockgateError)) throw error;
    log.error({ event: 'tls-wrong' }, `${error.message}; the certificate that was in force stays`);
  }
}

/** The version, the settings in force, and the ports that were chosen for 0. None of the settings is a secret. */
function startedMembers(settings: readonly ResolvedSetting[], gateway: Gateway): Record<string, unknown> {
  const texts = settings.map(({ setting, text }) => [setting.flag.replace(/^--/, '').replaceAll('-', '_'), text]);
  const { mqttPort, mqttTlsPort, httpPort, operatorPort } = gateway;
  const ports = { mqtt: mqttPort, mqtts: mqttTlsPort, http: httpPort, operator: operatorPort };
  return { event: 'started', version: VERSION, settings: Object.fromEntries(texts), ports };
}

/** So that the CLI finds this gateway without a flag. */
export function noteAddress(config: Config, gateway: Gateway): void {
  const address = `http://${reachable(config.operatorHost)}:${gateway.operatorPort}\n`;
  writeFileSync(addressFile(config.data), address, { mode: 0o600 });
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
  print(`  merchants  http://${reachable(config.httpHost)}:${gateway.httpPort}`);
  print(`  operators  http://${reachable(config.operatorHost)}:${gateway.operatorPort}`);
  print('Ctrl-C stops it. Next: lockgate merchant add NAME, lockgate device add MAC, lockgate tail');
}
