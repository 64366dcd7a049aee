// Finds what changed in a version, in CHANGELOG.md.
import { UserError } from '../workplace.mjs';

/** A heading: of a released version, such as `## 1.2.0 – 2026-12-01`, or without a date, as `## Unreleased`. */
const HEADING = /^## (\S+)(?: – (\d{4}-\d{2}-\d{2}))?$/;

/** The sections of a changelog, as `{ name, date, text }`; `date` is undefined for unreleased changes. */
function sectionsOf(changelog) {
  const sections = [];
  for (const line of changelog.split('\n')) {
    const [, name, date] = HEADING.exec(line) ?? [];
    if (name !== undefined) sections.push({ name, date, text: '' });
    else if (sections.length > 0) sections.at(-1).text += `${line}\n`;
  }
  return sections.map((section) => ({ ...section, text: section.text.trim() }));
}

/**
 * The section of a version as Markdown; `version` null stands for the unreleased changes. Throws a UserError with a
 * sentence if the section is missing or empty; also if a version has no date, or is not the newest one.
 */
export function sectionOf(changelog, version) {
  const sections = sectionsOf(changelog);
  const name = version ?? 'Unreleased';
  const section = sections.find((each) => each.name === name);
  const heading = version === null ? '## Unreleased' : `## ${name} – YYYY-MM-DD`;
  if (section === undefined) throw new UserError(`CHANGELOG.md has no section for ${name}: expected "${heading}".`);
  if (version !== null && section.date === undefined)
    throw new UserError(`CHANGELOG.md has no date for ${name}: expected "${heading}".`);
  if (section.text === '') throw new UserError(`The section ${name} of CHANGELOG.md is empty.`);
  const released = sections.filter((each) => each.date !== undefined);
  if (version !== null && released[0] !== section)
    throw new UserError(`The newest version in CHANGELOG.md is ${released[0].name}, not ${version} of package.json.`);
  return `# lockgate ${name}\n\n${section.text}\n`;
}
