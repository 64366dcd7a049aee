/** The merchants' port as one table of routes (interfaces.md §2), and what is known of its paths. */
import { HEALTH_ROUTES } from './health-routes.js';
import { PET_ROUTES } from './pet-routes.js';
import type { HttpRoute, MerchantRoute } from './route.js';
import { TEST_WEBHOOK_ROUTES } from './test-webhook-routes.js';
import { TOKEN_ROUTES } from './token-routes.js';
import { USER_ROUTES } from './user-routes.js';

/** The rows that merchants call. */
export const MERCHANT_ROUTES: readonly MerchantRoute[] = [
  ...PET_ROUTES,
  ...USER_ROUTES,
  ...TEST_WEBHOOK_ROUTES,
  ...TOKEN_ROUTES,
];

/** Every row of the port. */
export const HTTP_ROUTES: readonly HttpRoute[] = [...MERCHANT_ROUTES, ...HEALTH_ROUTES];

/** The methods that a path takes; undefined where there is no such path. HEAD asks for what has no consequences. */
export function methodsOf(path: string): string[] | undefined {
  const rows = HTTP_ROUTES.filter((row) => row.path === path);
  if (rows.length === 0) return undefined;
  return rows.flatMap((row) => ('tell' in row ? [row.method, 'HEAD'] : [row.method]));
}
