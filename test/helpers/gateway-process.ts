/**
 * A gateway in a process of its own, for tests that kill it. It takes one argument, a {@link GatewayRequest} as JSON,
 * prints a {@link GatewayReady} as JSON when it is ready, and ends by itself after SIGTERM when all is closed: should
 * something be left open, it hangs, and the test that waits for its end says so.
 */
import { startGateway } from '../../gateway/gateway.js';
import type { Store } from '../../gateway/store/store.js';
import type { UsageDelta } from '../../gateway/store/usage-store.js';
import { parseRange } from '../../gateway/webhooks/address-rule.js';
import { overriding, SABOTAGES, type SabotageName } from './sabotage.js';

export interface GatewayRequest {
  readonly data: string;
  readonly mqttPort: number;
  readonly operatorPort: number;
  readonly sabotage?: SabotageName | undefined;
  /** Prints a line `usage […]` with each commit of counted usage, when it is on the disk. */
  readonly tellsUsage?: boolean | undefined;
}

export interface GatewayReady {
  readonly mqttPort: number;
  readonly operatorPort: number;
  readonly operatorToken: string;
}

function tellingUsage(store: Store): Store {
  const { usage } = store;
  const add = async (deltas: readonly UsageDelta[], nowMs: number): Promise<void> => {
    await usage.add(deltas, nowMs);
    process.stdout.write(`usage ${JSON.stringify(deltas)}\n`);
  };
  return overriding(store, { usage: overriding(usage, { add }) });
}

async function main(): Promise<void> {
  // It must not outlive the test: whoever started it holds the other end.
  process.stdin.on('end', () => process.exit(1)).resume();
  (process.stdin as NodeJS.ReadStream & { unref?: () => void }).unref?.();
  const { sabotage, tellsUsage, ...place } = JSON.parse(process.argv[2] ?? '') as GatewayRequest;
  const gateway = await startGateway(
    {
      ...place,
      mqttHost: '127.0.0.1',
      operatorHost: '127.0.0.1',
      allowWebhookRange: [parseRange('127.0.0.0/8')],
    },
    {
      ...(sabotage !== undefined && { wrapStore: SABOTAGES[sabotage] }),
      ...(tellsUsage && { wrapStore: tellingUsage }),
    },
  );
  gateway.events.on('store-failed', ({ why }) => process.stderr.write(`store failed: ${why}\n`));
  process.once('SIGTERM', () => void gateway.close());
  const { mqttPort, operatorPort, operatorToken } = gateway;
  process.stdout.write(`${JSON.stringify({ mqttPort, operatorPort, operatorToken } satisfies GatewayReady)}\n`);
}

await main();
