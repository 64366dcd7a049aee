/** Logs in at the merchants' dashboard and the operators' console as their pages do. */
import type { GatewayClient } from '../../../cli/client.js';
import type { ConsoleName } from '../../../gateway/console/session-cookie.js';
import { cookieOf, PASSWORD, pageHeaders } from '../../helpers/console/dashboard.js';
import { callMerchantApi } from '../../helpers/http/merchant-call.js';
import { BENCH_MERCHANT } from '../load/lock-logins.js';

/** A session of a page: where it is, and the cookie as `name=value`. */
export interface ConsoleSession {
  readonly console: ConsoleName;
  readonly port: number;
  readonly cookie: string;
}

/** The only user of the bench's merchant. */
const USERNAME = 'ada';

/** Makes an owner of the bench's merchant, who may log in with {@link logInMerchant}. */
export async function addDashboardUser(client: GatewayClient, httpPort: number): Promise<void> {
  const invitation = { merchant: BENCH_MERCHANT, username: USERNAME, dashboard: 'owner' };
  const { token } = await client.post<{ readonly token: string }>('/invitations', invitation);
  await callOk(httpPort, '/v1/invitations/accept', { token, password: PASSWORD });
}

/** Logs in with user name and password. */
export async function logInMerchant(port: number): Promise<ConsoleSession> {
  const login = { merchant: BENCH_MERCHANT, username: USERNAME, password: PASSWORD };
  return { console: 'merchant', port, cookie: await callOk(port, '/console/login', login) };
}

/** Logs in with a new one-time link. */
export async function logInOperator(client: GatewayClient): Promise<ConsoleSession> {
  const { token } = await client.post<{ readonly token: string }>('/console/links', {});
  const port = Number(new URL(client.origin).port);
  return { console: 'operator', port, cookie: await callOk(port, '/console/login', { token }) };
}

/** Makes a call as the page does. Returns the cookie that it sets, if any. @throws Error if it is refused */
async function callOk(port: number, path: string, body: unknown): Promise<string> {
  const answer = await callMerchantApi({ httpPort: port }, path, { headers: pageHeaders(port), body });
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`);
  return cookieOf(answer);
}
