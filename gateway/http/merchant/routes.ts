/** The merchants' port as one table of routes (interfaces.md §2), and what is known of its paths. */
import { DEFAULT_FAIRNESS, type Fairness } from '../../fairness/fairness-settings.js';
import { HEALTH_ROUTES } from '../shared/health-routes.js';
import { petRoutes } from './pet-routes.js';
import type { HttpRoute, MerchantRoute } from './route.js';
import { TEST_WEBHOOK_ROUTES } from './test-webhook-routes.js';
import { TOKEN_ROUTES } from './token-routes.js';
import { userRoutes } from './user-routes.js';

/** The rows that merchants call, within these limits. */
export function merchantRoutes(fairness: Fairness): readonly MerchantRoute[] {
  return [...petRoutes(fairness), ...userRoutes(fairness), ...TEST_WEBHOOK_ROUTES, ...TOKEN_ROUTES];
}

/** Every row of the port, within these limits. */
export function httpRoutes(fairness: Fairness): readonly HttpRoute[] {
  return [...merchantRoutes(fairness), ...HEALTH_ROUTES];
}

/** The rows that merchants call where nobody set a limit. */
export const MERCHANT_ROUTES: readonly MerchantRoute[] = merchantRoutes(DEFAULT_FAIRNESS);

/** The same for every row. */
export const HTTP_ROUTES: readonly HttpRoute[] = [...MERCHANT_ROUTES, ...HEALTH_ROUTES];

/** The methods that a path takes; undefined where there is no such path. HEAD asks for what has no consequences. */
export function methodsOf(path: string): string[] | undefined {
  const rows = HTTP_ROUTES.filter((row) => row.path === path);
  if (rows.length === 0) return undefined;
  return rows.flatMap((row) => ('answer' in row ? [row.method, 'HEAD'] : [row.method]));
}
