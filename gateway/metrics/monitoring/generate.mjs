// Writes the dashboard and the alert rules to deploy/monitoring. They are committed, so that operators find them
// without a build; `--check` only checks that they are up to date. The script runs the compiled code, so run a build
// first.
import { readFileSync, writeFileSync } from 'node:fs';

const root = new URL('../../../', import.meta.url);
const compiled = (name) => import(new URL(`dist/gateway/metrics/monitoring/${name}.js`, root).href);
const { alertRulesText } = await compiled('alerts');
const { dashboardText } = await compiled('dashboard');
const files = {
  'deploy/monitoring/alerts.yaml': alertRulesText(),
  'deploy/monitoring/dashboard.json': dashboardText(),
};

for (const [path, text] of Object.entries(files)) {
  const file = new URL(path, root);
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8').replaceAll('\r\n', '\n') !== text) {
    console.error(`${path} is not up to date. Run npm run gen and commit the result.`);
    process.exitCode = 1;
  }
}
