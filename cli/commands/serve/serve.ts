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

/** For a folder whose store is lost. */
export const NEW_FLAG = ['--new', 'Start with a new, empty store if the folder has lost its own.'] as const;

/** What commands that run a gateway take. */
export interface RunFlags extends SettingFlags {
  readonly new?: boolean;
}

/**
 * The flags of the settings. They are repeated here so that help loads no part of the gateway; a test compares them.
 */
export const SETTING_FLAGS: readonly (readonly [flag: string, help: string])[] = [
  ['--data <folder>', 'The data folder (default: ./data).'],
  ['--key-file <file>', 'The key that secrets are encrypted with (default: key in the data folder).'],
  ['--mqtt-host <address>', 'Where locks connect (default: 127.0.0.1).'],
  ['--mqtt-port <port>', 'MQTT without TLS; 0 lets the system choose (default: 1883).'],
  ['--mqtt-tls-host <address>', 'Where locks connect over TLS (default: 0.0.0.0).'],
  ['--mqtt-tls-port <port>', 'MQTT over TLS; 0 lets the system choose (default: 8883).'],
  ['--mqtt-tls-cert <file>', 'The certificate with its chain, PEM; enables TLS.'],
  ['--mqtt-tls-key <file>', 'Its private key, PEM.'],
  ['--mqtt-per-address <count>', 'MQTT connections that one address may have; 0 for any number (default: 0).'],
  ['--lock-uplinks-per-second <count>', 'A lock’s uplinks a second, on average; 0 for any number (default: 200).'],
  ['--lock-uplink-burst <count>', 'The largest burst of uplinks (default: 2000).'],
  ['--lock-uplinks-per-day <count>', 'A lock’s uplinks a day; 0 for any number (default: 200000).'],
  ['--http-host <address>', 'Where merchants connect (default: 127.0.0.1).'],
  ['--http-port <port>', 'The merchants’ HTTP interface; 0 lets the system choose (default: 8080).'],
  ['--http-cors-origin <origins>', 'Origins whose pages may call it from a browser, such as https://example.com.'],
  ['--http-per-address <count>', 'HTTP connections that one address may have; 0 for any number (default: 1000).'],
  ['--trusted-proxies <ranges>', 'Proxies whose X-Forwarded-For counts, such as 10.0.0.0/8.'],
  ['--merchant-requests <rate>', 'A merchant’s HTTP requests a second, on average; 0 for any number (default: 50).'],
  ['--merchant-requests-burst <count>', 'The largest burst of requests (default: 200).'],
  ['--merchant-bytes <rate>', 'A merchant’s bytes in bodies a second; 0 for any amount (default: 1048576).'],
  ['--merchant-bytes-burst <bytes>', 'The largest burst of bytes (default: 8388608).'],
  ['--merchant-hashes <rate>', 'A merchant’s passwords hashed or compared a minute; 0 for any number (default: 20).'],
  ['--merchant-hashes-burst <count>', 'The largest burst of passwords (default: 1000).'],
  ['--merchant-pets <count>', 'Pets that a merchant may store; 0 for any number (default: 100000).'],
  ['--merchant-pet-bytes <bytes>', 'The largest pet in bytes (default: 16384).'],
  ['--merchant-users <count>', 'Users that a merchant may store; 0 for any number (default: 1000000).'],
  ['--merchant-kept-bytes <bytes>', 'Bytes that a merchant may store in all; 0 for any amount (default: 1073741824).'],
  ['--name-length <characters>', 'The longest name; 0 for any length (default: 256).'],
  ['--stranger-requests <rate>', 'Requests a second from one address without a key; 0 for any number (default: 100).'],
  ['--stranger-requests-burst <count>', 'The largest burst of such requests (default: 1000).'],
  ['--operator-host <address>', 'Where the operator’s interface listens (default: 127.0.0.1).'],
  ['--operator-port <port>', 'The operator’s interface (default: 8081).'],
  ['--allow-webhook-range <ranges>', 'Addresses that webhooks may go to besides public ones, such as 127.0.0.0/8.'],
  ['--keep-days <days>', 'How long pings and findings are kept: 31 or more, or 0 for unlimited (default: 400).'],
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
    // Preloaded, so that the first call does not wait for it and has descriptors for it; that call reports a failure.
    void loadRequestChecks().catch(() => undefined);
    onHangUp(() => rereadFiles(config, gateway, log));
    // On a terminal the lines above are enough.
    if (isJson) log.info(startedMembers(settings, gateway), 'started');
    await interrupted.happened;
    if (isJson) log.info({ event: 'stopping' }, 'stopping');
    else note('Stopping: pings that have arrived are stored and acknowledged first.');
    await closeGateway(gateway, (why) => log.fatal({ event: 'stop-hung' }, why));
    if (isJson) log.info({ event: 'stopped' }, 'stopped');
  } finally {
    stopLogging();
  }
  process.exitCode = 0;
}

/**
 * Handles SIGHUP. New connections get a new certificate; a wrong one changes nothing. The operator's token is reread
 * anyway, and settings change only at the next start.
 */
function rereadFiles({ mqttTls }: Config, gateway: Gateway, log: Logger): void {
  if (mqttTls === null) {
    log.info({ event: 'nothing-to-read' }, 'SIGHUP: nothing to reread, because no TLS certificate is set');
    return;
  }
  try {
    const { validTo, fingerprint } = gateway.reloadTls();
    log.info(
      { event: 'tls-read', valid_to: validTo, fingerprint },
      `reread the certificate; it is valid until ${validTo}`,
    );
  } catch (error) {
    if (!(error instanceof LockgateError)) throw error;
    log.error({ event: 'tls-wrong' }, `${error.message}; the previous certificate stays in use`);
  }
}

/** The version, the effective settings, and the ports chosen for 0. None of the settings is a secret. */
function startedMembers(settings: readonly ResolvedSetting[], gateway: Gateway): Record<string, unknown> {
  const texts = settings.map(({ setting, text }) => [setting.flag.replace(/^--/, '').replaceAll('-', '_'), text]);
  const { mqttPort, mqttTlsPort, httpPort, operatorPort } = gateway;
  const ports = { mqtt: mqttPort, mqtts: mqttTlsPort, http: httpPort, operator: operatorPort };
  return { event: 'started', version: VERSION, settings: Object.fromEntries(texts), ports };
}

/** Records the address, so that the CLI finds this gateway without a flag. */
export function noteAddress(config: Config, gateway: Gateway): void {
  const address = `http://${reachable(config.operatorHost)}:${gateway.operatorPort}\n`;
  writeFileSync(addressFile(config.data), address, { mode: 0o600 });
}

/** An address to connect to: loopback for a listener on all addresses. */
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
