/** The operator's route for the settings in force (interfaces.md §6). None of them is a secret. */
import { Type } from 'typebox';

import { SETTING_SOURCES } from '../../../config.js';
import type { Route } from '../routes.js';
import { OneOf } from '../schemas.js';

const Setting = Type.Object({
  key: Type.String(),
  flag: Type.String(),
  environment: Type.String(),
  value: Type.String({ description: 'In force: of a port that was left to the system, the one that it chose.' }),
  given: Type.String({ description: 'As it was given.' }),
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
    summary: 'The settings in force, and where each came from.',
    success: 200,
    answer: Type.Object({ settings: Type.Array(Setting) }),
    handle: async ({ settings }) => ({ settings: await settings() }),
  },
];
