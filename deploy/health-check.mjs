// Exit code 0 if the gateway of this machine or container answers on the merchants' port, else 1. It asks whether the
// gateway is up, not whether it takes pings: a restart does not help where the disk is full.
import { get } from 'node:http';

/** Less than the 5 s after which Docker ends the check. */
const LIMIT_MS = 4000;
const port = process.env.LOCKGATE_HTTP_PORT || 8080;

const call = get({ host: '127.0.0.1', port, path: '/healthz', timeout: LIMIT_MS }, (answer) => {
  process.exit(answer.statusCode === 200 ? 0 : 1);
});
call.on('timeout', () => process.exit(1));
call.on('error', () => process.exit(1));
