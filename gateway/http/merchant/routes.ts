/**
 * The routes of the merchants' port (interfaces.md §2), except those of the dashboard's page (console/routes.ts), which
 * programs don't call. Pets are part of the service specification's example operations.
 */
import { DEFAULT_FAIRNESS, type Fairness } from '../../fairness/fairness-settings.js';
import { HEALTH_ROUTES } from '../shared/health-routes.js';
import { CONSOLE_ROUTES } from './console/routes.js';
import { INVITATION_ROUTES } from './invitation-routes.js';
import { OWN_DATA_ROUTES } from './own-data/routes.js';
import { petRoutes } from './pet-routes.js';
import type { HttpRoute, MerchantRoute } from './route.js';
import { TEST_WEBHOOK_ROUTES } from './test-webhook-routes.js';
import { TOKEN_ROUTES } from './token-routes.js';
import { userRoutes } from './user-routes.js';

/** The merchants' routes with the given limits. */
export function merchantRoutes(fairness: Fairness): readonly MerchantRoute[] {
  const ofSpecification = [...petRoutes(fairness), ...userRoutes(fairness), ...TEST_WEBHOOK_ROUTES, ...TOKEN_ROUTES];
  return [...ofSpecification, ...OWN_DATA_ROUTES, ...INVITATION_ROUTES];
}

/** The merchants' routes with the given limits, and those of health. */
export function httpRoutes(fairness: Fairness): readonly HttpRoute[] {
  return [...merchantRoutes(fairness), ...HEALTH_ROUTES];
}

/** The merchants' routes with the default limits. */
export const MERCHANT_ROUTES: readonly MerchantRoute[] = merchantRoutes(DEFAULT_FAIRNESS);

/** The merchants' routes with the default limits, and those of health. */
export const HTTP_ROUTES: readonly HttpRoute[] = [...MERCHANT_ROUTES, ...HEALTH_ROUTES];

/** A route's path as the server's router spells it: `/v1/locks/:mac`. */
export function routerPath({ path }: Pick<HttpRoute, 'path'>): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/** Each route with a pattern that its requests' paths match. */
const PATTERNS = [...HTTP_ROUTES, ...CONSOLE_ROUTES].map((route) => {
  const pattern = route.path.replaceAll(/\{\w+\}/g, '[^/]+');
  return { route, pattern: new RegExp(`^${pattern}$`) };
});

/**
 * The methods of a path; undefined if there is no such path. Only the routes of health allow HEAD, since every
 * other call counts against its merchant's limits.
 */
export function methodsOf(path: string): string[] | undefined {
  const routes = PATTERNS.filter(({ pattern }) => pattern.test(path)).map(({ route }) => route);
  if (routes.length === 0) return undefined;
  // Only the routes of health have `answer`; all others have `handle`.
  return routes.flatMap((route) => ('answer' in route ? [route.method, 'HEAD'] : [route.method]));
}
