/** The operators' route for the effective settings (interfaces.md §6). None of them is a secret. */
import { Type } from 'typebox';

import { SETTING_SOURCES } from '../../../resolved-settings.js';
import type { Route } from '../routes.js';
import { OneOf } from '../schemas.js';

const Setting = Type.Object({
  key: Type.String(),
  flag: Type.String(),
  environment: Type.String(),
  value: Type.String({ description: 'The effective value; for a port that the system chose, that port.' }),
  given: Type.String({ description: 'The value as it was given.' }),
  source: OneOf(SETTING_SOURCES),
  default: Type.String(),
  unit: Type.String(),
  meaning: Type.String(),
});

/** Every route for settings. */
export const CONFIG_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/config',
    operation: 'config.show',
    summary: 'The effective settings and the source of each.',
    success: 200,
    answer: Type.Object({ settings: Type.Array(Setting) }),
    handle: async ({ settings }) => ({ settings: await settings() }),
  },
];
