/**
 * Calls the gateway as the dashboard's page in a browser does: with the user's cookie, the page's Origin and header.
 */
import type { Gateway } from '../../../gateway/gateway.js';
import type { DashboardRole } from '../../../gateway/store/contract/merchants/dashboard-roles.js';
import { callMerchantApi, type MerchantAnswer, type MerchantCall } from '../http/merchant-call.js';

/** The password of every user that {@link addUser} adds. */
export const PASSWORD = 'correct horse';

/** What a browser sends with each call of our page. */
export function pageHeaders(port: number, cookie = ''): Record<string, string> {
  const host = `127.0.0.1:${port}`;
  return { host, origin: `http://${host}`, 'x-lockgate-console': '1', ...(cookie !== '' && { cookie }) };
}

/** Adds a user with a password and a role (null: none, so no access to the dashboard). Returns the user's id. */
export async function addUser(
  gateway: Gateway,
  merchant: string,
  username: string,
  role: DashboardRole | null,
): Promise<bigint> {
  const merchantId = (await gateway.store.listMerchants()).find(({ name }) => name === merchant)?.id ?? 0;
  const absent = { id: null, firstName: null, lastName: null, email: null, phone: null, userStatus: null };
  const user = { ...absent, username, password: PASSWORD, dashboardRole: role };
  await gateway.merchants.users.add(merchantId, [user], new AbortController().signal, 'operator');
  return (await gateway.store.people.findLogin(merchantId, username))?.id ?? 0n;
}

/** Logs in; `changes` replaces the password and adds or replaces headers. */
export async function logIn(
  gateway: Gateway,
  merchant: string,
  username: string,
  changes: { readonly password?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<MerchantAnswer> {
  return await callMerchantApi(gateway, '/console/login', {
    headers: { ...pageHeaders(gateway.httpPort), ...changes.headers },
    body: { merchant, username, password: changes.password ?? PASSWORD },
  });
}

/** The cookie that an answer sets, as `name=value`. */
export function cookieOf({ headers }: MerchantAnswer): string {
  return String(headers['set-cookie'] ?? '').split(';')[0] ?? '';
}

/** The page of a user who is logged in. */
export class Dashboard {
  readonly cookie: string;
  readonly #gateway: Gateway;

  constructor(gateway: Gateway, cookie: string) {
    this.#gateway = gateway;
    this.cookie = cookie;
  }

  /** Logs the user in. @throws Error if the gateway refuses */
  static async open(gateway: Gateway, merchant: string, username: string): Promise<Dashboard> {
    const answer = await logIn(gateway, merchant, username);
    if (answer.status !== 200) throw new Error(answer.text);
    return new Dashboard(gateway, cookieOf(answer));
  }

  /** Makes a call as the page does; `headers` override those of the page, and an empty one is left out. */
  async call(path: string, call: MerchantCall = {}): Promise<MerchantAnswer> {
    const headers = { ...pageHeaders(this.#gateway.httpPort, this.cookie), ...call.headers };
    const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''));
    return await callMerchantApi(this.#gateway, path, { ...call, headers: sent });
  }
}
