// The software bill of materials, in the format CycloneDX: what the package contains and what npm installs with it.
import { buildPackages } from '../bundles.mjs';
import { pathInClone } from '../workplace.mjs';
import { npmOutput } from './npm-output.mjs';

/** Whether a component is a tool of the build, whose code is not part of the package. */
const isBuildTool = (name) => buildPackages.some((tool) => name === tool || name.startsWith(`@${tool}/`));
/** The name in a reference such as `@esbuild/linux-x64@0.28.2`. */
const nameOf = (reference) => reference.replace(/@[^@]*$/, '');

/** The bill, as an object. */
export async function makeBill() {
  const format = ['--sbom-format', 'cyclonedx', '--sbom-type', 'application'];
  const bill = JSON.parse(await npmOutput(['sbom', ...format, '--omit', 'dev', '--package-lock-only'], pathInClone()));
  // npm takes the name from the folder.
  bill.metadata.component.name = 'lockgate';
  bill.metadata.component.properties = [];
  bill.components = bill.components.filter(({ name }) => !isBuildTool(name));
  bill.dependencies = bill.dependencies
    .filter(({ ref }) => !isBuildTool(nameOf(ref)))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((each) => !isBuildTool(nameOf(each))) }));
  return bill;
}
