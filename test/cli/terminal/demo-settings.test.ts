/** The demo's settings: its webhooks and its notify URL may be on this machine. */
import t from 'tap';
import { demoConfig } from '../../../cli/commands/demo/demo.js';
import { isAllowedAddress } from '../../../gateway/webhooks/sending/address-rule.js';

t.test('notices may be sent to this machine, as webhooks are', async (t) => {
  const ports = { mqttPort: '0', httpPort: '0', operatorPort: '0' };
  // Only the flags that this test is about; the others may be missing.
  const flags = { ...ports, notifyUrl: 'http://127.0.0.1:9001/ops' } as unknown as Parameters<typeof demoConfig>[0];
  const { config } = await demoConfig(flags);
  t.match(config.notifyUrl, 'http://127.0.0.1:9001/ops');
  t.ok(isAllowedAddress('127.0.0.1', config.allowWebhookRange));
  t.notOk(isAllowedAddress('10.0.0.1', config.allowWebhookRange));
});
