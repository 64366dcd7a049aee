// The package's README. A registry shows it without the files around it, so relative links would lead nowhere there:
// they become the names of files, and pictures are left out.
import { posix } from 'node:path';

const RELATIVE = '(?![a-z]+:|#)';
const picture = new RegExp(`^!\\[[^\\]]*\\]\\(${RELATIVE}[^)]+\\)\\n\\n`, 'gm');
const link = new RegExp(`\\[([^\\]]*)\\]\\((${RELATIVE}[^)#\\s]+)[^)]*\\)`, 'g');

/**
 * README.md of the clone as the package's. `packed` are the paths of the package's files; of a link to another file
 * only the text stays.
 */
export function packageReadme(text, packed) {
  const named = (_link, words, target) => {
    const file = posix.normalize(target);
    if (!packed.includes(file)) return words;
    return words === file ? `\`${file}\`` : `${words} (\`${file}\`)`;
  };
  const pictureless = text.replace(picture, '');
  return `${pictureless.replace(link, named).trimEnd()}\n\nThe files that are named here are in the package.\n`;
}
