/** The table of the routes for the merchant's own data, `/v1/…` (interfaces.md §2). Each states the scope it needs. */
import type { MerchantRoute } from '../route.js';
import { COMMAND_ROUTES } from './command-routes.js';
import { EVENT_ROUTES } from './event-routes.js';
import { FINDING_ROUTES } from './finding-routes.js';
import { HISTORY_ROUTES } from './history/history-routes.js';
import { PING_ROUTES } from './history/ping-routes.js';
import { LOCK_ROUTES } from './lock-routes.js';
import { OWN_INVITATION_ROUTES } from './people/invitation-routes.js';
import { DASHBOARD_USER_ROUTES } from './people/user-routes.js';
import { STREAM_ROUTES } from './stream-routes.js';
import { USAGE_ROUTES } from './usage-routes.js';
import { WEBHOOK_ROUTES } from './webhook-routes.js';
import { OWN_WHY_ROUTES } from './why-routes.js';

export const OWN_DATA_ROUTES: readonly MerchantRoute[] = [
  ...LOCK_ROUTES,
  ...PING_ROUTES,
  ...HISTORY_ROUTES,
  ...FINDING_ROUTES,
  ...OWN_WHY_ROUTES,
  ...EVENT_ROUTES,
  ...STREAM_ROUTES,
  ...COMMAND_ROUTES,
  ...WEBHOOK_ROUTES,
  ...USAGE_ROUTES,
  ...DASHBOARD_USER_ROUTES,
  ...OWN_INVITATION_ROUTES,
];
