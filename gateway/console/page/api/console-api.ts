/** Gives all screens of a page its calls (console-calls.ts), as a context of preact. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { ConsoleApi } from './console-calls.js';

const ApiContext = createContext<ConsoleApi | null>(null);

/** Passes a page's calls to all screens inside it. */
export const ApiProvider = ApiContext.Provider;

/** The calls of this page. */
export function useApi(): ConsoleApi {
  const api = useContext(ApiContext);
  if (api === null) throw new Error('the screen is outside of ApiProvider');
  return api;
}
